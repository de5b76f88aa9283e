"""Reads exported files with NumPy and with VTK's own XML reader and prints what it saw, as JSON.

    read_exports.py FILE...

NPZ: shape, type and sum of each array. VTU: numbers of points and cells, volume of all cells, bounds, time, and the sums of the cell arrays.
"""

import json
import sys

import numpy


def archive(path):
    with numpy.load(path, allow_pickle=False) as arrays:
        return {
            name: {"shape": list(array.shape), "type": str(array.dtype), "sum": float(array[numpy.isfinite(array)].sum(dtype="float64"))}
            for name, array in arrays.items()
        }


def grid(path):
    from vtkmodules.util.numpy_support import vtk_to_numpy
    from vtkmodules.vtkFiltersVerdict import vtkCellSizeFilter
    from vtkmodules.vtkIOXML import vtkXMLUnstructuredGridReader

    reader = vtkXMLUnstructuredGridReader()
    reader.SetFileName(path)
    reader.Update()
    if reader.GetErrorCode():
        raise SystemExit(f"{path}: VTK's reader has the error {reader.GetErrorCode()}")
    data = reader.GetOutput()
    sizes = vtkCellSizeFilter()
    sizes.SetInputData(data)
    sizes.Update()
    volumes = sizes.GetOutput().GetCellData().GetArray("Volume")
    cells = data.GetCellData()
    sums = {}
    for k in range(cells.GetNumberOfArrays()):
        array = cells.GetArray(k)
        values = vtk_to_numpy(array).reshape(-1, array.GetNumberOfComponents()).astype("float64")
        sums[array.GetName()] = [float(value) if numpy.isfinite(value) else None for value in values.sum(axis=0)]
    time = data.GetFieldData().GetArray("TimeValue")
    return {
        "points": data.GetNumberOfPoints(),
        "cells": data.GetNumberOfCells(),
        "volume": float(vtk_to_numpy(volumes).sum()) if data.GetNumberOfCells() else 0.0,
        "bounds": list(data.GetBounds()),
        "time": time.GetValue(0) if time else None,
        "arrays": sums,
        "point_arrays": sorted(data.GetPointData().GetArrayName(k) for k in range(data.GetPointData().GetNumberOfArrays())),
    }


print(json.dumps([archive(path) if path.endswith(".npz") else grid(path) for path in sys.argv[1:]]))
