"""Reads temporal VTKHDF PolyData files with VTK's own reader and prints what it saw, as JSON.

    read_vtkhdf.py FILE...      {"version": "9.5.2", "files": [[step, ...], ...]}
    read_vtkhdf.py --version    the version of VTK; fails if there is none

Each step: time, numbers of points and of cells of each kind, bounds, area of the polygons, length of the lines, and for each
point array the sums of its components.
"""

import json
import sys

import numpy
from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkCommonCore import vtkVersion
from vtkmodules.vtkCommonExecutionModel import vtkStreamingDemandDrivenPipeline
from vtkmodules.vtkIOHDF import vtkHDFReader


def pieces(data):
    """The polygonal pieces: one data set, or the leaves of a partitioned one."""
    if data.IsA("vtkPolyData"):
        return [data]
    return [data.GetPartition(k) for k in range(data.GetNumberOfPartitions()) if data.GetPartition(k)]


def bounds(parts):
    """Of the parts that have points; None if none has."""
    boxes = [part.GetBounds() for part in parts if part.GetNumberOfPoints() > 0]
    if not boxes:
        return None
    return [pick(box[k] for box in boxes) for k, pick in enumerate((min, max) * 3)]


def arrays(parts):
    sums = {}
    for part in parts:
        data = part.GetPointData()
        for k in range(data.GetNumberOfArrays()):
            array = data.GetArray(k)
            if array.GetNumberOfTuples() != part.GetNumberOfPoints():
                raise SystemExit(f"{array.GetName()}: {array.GetNumberOfTuples()} rows on {part.GetNumberOfPoints()} points")
            width = array.GetNumberOfComponents()
            values = vtk_to_numpy(array).reshape(-1, width).sum(axis=0, dtype="float64")
            before = sums.setdefault(array.GetName(), [0.0] * width)
            sums[array.GetName()] = [a + float(b) for a, b in zip(before, values)]
    return sums


def connectivity_is_sound(part):
    for cells in (part.GetVerts(), part.GetLines(), part.GetPolys(), part.GetStrips()):
        ids = vtk_to_numpy(cells.GetConnectivityArray())
        if len(ids) and not (0 <= ids.min() and ids.max() < part.GetNumberOfPoints()):
            return False
    return True


def cells_of(part, cells):
    """The corners of each cell."""
    points = vtk_to_numpy(part.GetPoints().GetData()).astype("float64") if part.GetNumberOfPoints() else None
    ids, ends = vtk_to_numpy(cells.GetConnectivityArray()), vtk_to_numpy(cells.GetOffsetsArray())
    return [points[ids[a:b]] for a, b in zip(ends[:-1], ends[1:])]


def area(corners):
    """Of a flat polygon, from the sum of the cross products of its edges' ends."""
    ends = numpy.roll(corners, -1, axis=0)
    return float(numpy.linalg.norm(numpy.cross(corners - corners[0], ends - corners[0]).sum(axis=0)) / 2)


def length(corners):
    return float(numpy.linalg.norm(numpy.diff(corners, axis=0), axis=1).sum())


def read(path):
    reader = vtkHDFReader()
    reader.SetFileName(path)
    reader.UpdateInformation()
    information = reader.GetOutputInformation(0)
    times = information.Get(vtkStreamingDemandDrivenPipeline.TIME_STEPS()) or ()
    steps = [describe(reader, time) for time in times]
    # Readers keep what they read: going back in time must show the same.
    if [describe(reader, time) for time in reversed(times)] != steps[::-1]:
        raise SystemExit(f"{path}: steps look different when read backwards")
    return steps


def describe(reader, time):
    reader.UpdateTimeStep(time)
    parts = pieces(reader.GetOutputDataObject(0))
    if not all(connectivity_is_sound(part) for part in parts):
        raise SystemExit(f"{reader.GetFileName()}: at {time} there are cells on points that are not there")
    return {
        "time": time,
        "points": sum(part.GetNumberOfPoints() for part in parts),
        "vertices": sum(part.GetNumberOfVerts() for part in parts),
        "lines": sum(part.GetNumberOfLines() for part in parts),
        "polygons": sum(part.GetNumberOfPolys() for part in parts),
        "bounds": bounds(parts),
        "area": sum(area(corners) for part in parts for corners in cells_of(part, part.GetPolys())),
        "length": sum(length(corners) for part in parts for corners in cells_of(part, part.GetLines())),
        "arrays": arrays(parts),
    }


if __name__ == "__main__":
    version = vtkVersion().GetVTKVersion()
    if sys.argv[1:] == ["--version"]:
        print(version)
    else:
        print(json.dumps({"version": version, "files": [read(path) for path in sys.argv[1:]]}))
