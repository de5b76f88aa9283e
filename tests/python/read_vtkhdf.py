"""Reads temporal VTKHDF PolyData files with VTK's own reader and prints what it saw, as JSON.

    read_vtkhdf.py FILE...      {"version": "9.5.2", "files": [[step, ...], ...]}
    read_vtkhdf.py --version    the version of VTK; fails if there is none

Each step: time, numbers of points and of cells of each kind, bounds, and for each point array its number of components and the
sums of its components.
"""

import json
import sys

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


def read(path):
    reader = vtkHDFReader()
    reader.SetFileName(path)
    reader.UpdateInformation()
    information = reader.GetOutputInformation(0)
    times = information.Get(vtkStreamingDemandDrivenPipeline.TIME_STEPS()) or ()
    steps = []
    for step, time in enumerate(times):
        reader.UpdateTimeStep(time)
        parts = pieces(reader.GetOutputDataObject(0))
        if not all(connectivity_is_sound(part) for part in parts):
            raise SystemExit(f"{path}: step {step} has cells on points that are not there")
        steps.append(
            {
                "time": time,
                "points": sum(part.GetNumberOfPoints() for part in parts),
                "vertices": sum(part.GetNumberOfVerts() for part in parts),
                "lines": sum(part.GetNumberOfLines() for part in parts),
                "polygons": sum(part.GetNumberOfPolys() for part in parts),
                "bounds": bounds(parts),
                "arrays": arrays(parts),
            }
        )
    return steps


if __name__ == "__main__":
    version = vtkVersion().GetVTKVersion()
    if sys.argv[1:] == ["--version"]:
        print(version)
    else:
        print(json.dumps({"version": version, "files": [read(path) for path in sys.argv[1:]]}))
