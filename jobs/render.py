#!/usr/bin/env python3
"""A picture of a result, made without a display.

    jobs/render.py out/ballast-box --step last --out picture.png
    jobs/render.py out/ballast-box --color speed
    jobs/render.py out/ballast-box --chains out/ballast-box/chains.vtkhdf

RESULT is a bodies.vtkhdf file or the directory that holds one. Needs VTK 9.4 or later from PyPI (pip install vtk numpy), which
draws with EGL or OSMesa where there is no display (Debian: libegl1 libgl1-mesa-dri, or libosmesa6).
"""

import argparse
import math
import pathlib
import sys

import numpy
from vtkmodules.util.numpy_support import numpy_to_vtk, vtk_to_numpy
from vtkmodules.vtkCommonCore import vtkLogger, vtkLookupTable, vtkPoints
from vtkmodules.vtkCommonDataModel import vtkCellArray, vtkImageData, vtkPolyData
from vtkmodules.vtkCommonExecutionModel import vtkStreamingDemandDrivenPipeline
from vtkmodules.vtkFiltersCore import vtkAppendPolyData, vtkPolyDataNormals, vtkTubeFilter
from vtkmodules.vtkFiltersSources import vtkPlaneSource, vtkSphereSource
from vtkmodules.vtkIOHDF import vtkHDFReader
from vtkmodules.vtkIOImage import vtkPNGWriter
from vtkmodules.vtkRenderingAnnotation import vtkScalarBarActor
from vtkmodules.vtkRenderingCore import (
    vtkActor,
    vtkGlyph3DMapper,
    vtkLight,
    vtkPolyDataMapper,
    vtkRenderer,
    vtkRenderWindow,
    vtkTextActor,
    vtkWindowToImageFilter,
)
from vtkmodules.vtkRenderingOpenGL2 import vtkRenderStepsPass, vtkSSAOPass
import vtkmodules.vtkRenderingFreeType  # noqa: F401  (draws the text)

# Granite, basalt, limestone, sandstone, porphyry: sRGB.
STONES = numpy.array(
    [
        [176, 160, 140],
        [150, 138, 124],
        [196, 178, 150],
        [162, 134, 112],
        [128, 122, 116],
        [186, 150, 120],
        [206, 192, 170],
        [142, 116, 100],
        [168, 158, 150],
    ],
    dtype="float64",
)

# From the colour of dust, for what rests or carries nothing, to a dark glow.
HEAT = numpy.array([[224, 218, 208], [250, 204, 96], [238, 118, 52], [186, 34, 62], [92, 12, 92]], dtype="float64")

# The picture is drawn this many times wider and higher, and then averaged: smooth edges.
FINER = 2


def fail(message):
    sys.exit(f"render.py: {message}")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result", type=pathlib.Path, metavar="RESULT")
    parser.add_argument("--step", default="last", help="number of the frame, 'first' or 'last' (default)")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("picture.png"))
    parser.add_argument("--color", choices=["stone", "speed", "group"], default="stone")
    parser.add_argument("--fastest", type=float, help="speed at the upper end of the colours, m/s (default: the fastest body)")
    parser.add_argument("--chains", type=pathlib.Path, help="chains.vtkhdf: draw lines of force through glassy bodies")
    parser.add_argument("--walls", choices=["hidden", "back"], default="hidden", help="half-spaces behind the bodies")
    parser.add_argument("--hide-group", type=int, action="append", default=[], metavar="N")
    parser.add_argument("--no-floor", action="store_true")
    parser.add_argument("--azimuth", type=float, default=-60.0, help="degrees, from +x towards +y (default -60)")
    parser.add_argument("--elevation", type=float, default=22.0, help="degrees above the horizon (default 22)")
    parser.add_argument("--size", default="1600x1200", help="pixels, WIDTHxHEIGHT")
    parser.add_argument("--label", action="store_true", help="write the time into the picture")
    return parser.parse_args()


def read(path, step):
    """The polygonal data of one frame, its time and its number."""
    if not path.is_file():
        fail(f"{path}: no such file")
    reader = vtkHDFReader()
    if not reader.CanReadFile(str(path)):
        fail(f"{path}: not a VTKHDF file")
    reader.SetFileName(str(path))
    reader.UpdateInformation()
    times = reader.GetOutputInformation(0).Get(vtkStreamingDemandDrivenPipeline.TIME_STEPS()) or ()
    if not times:
        fail(f"{path}: no frames in it")
    try:
        number = {"first": 0, "last": len(times) - 1}.get(step)
        number = int(step) if number is None else number
        time = times[number]
    except (ValueError, IndexError):
        fail(f"{path}: has frames 0 to {len(times) - 1}, not {step!r}")
    reader.UpdateTimeStep(time)
    data = reader.GetOutputDataObject(0)
    if data.IsA("vtkPolyData"):
        return data, time, number % len(times)
    append = vtkAppendPolyData()
    for k in range(data.GetNumberOfPartitions()):
        if data.GetPartition(k) and data.GetPartition(k).GetNumberOfPoints():
            append.AddInputData(data.GetPartition(k))
    append.Update()
    return append.GetOutput(), time, number % len(times)


def column(data, name):
    array = data.GetPointData().GetArray(name)
    return None if array is None else vtk_to_numpy(array)


def positions(data):
    if data.GetNumberOfPoints() == 0:
        return numpy.zeros((0, 3))
    return vtk_to_numpy(data.GetPoints().GetData()).astype("float64")


def polygons(data):
    """Connectivity and the number of corners of each polygon."""
    cells = data.GetPolys()
    ends = vtk_to_numpy(cells.GetOffsetsArray()).astype("int64")
    return vtk_to_numpy(cells.GetConnectivityArray()).astype("int64"), numpy.diff(ends)


def select(data, keep):
    """The part of `data` whose points are kept; a cell stays if all its points do."""
    numbers = numpy.cumsum(keep) - 1
    part = vtkPolyData()
    points = vtkPoints()
    points.SetData(numpy_to_vtk(positions(data)[keep], deep=True))
    part.SetPoints(points)
    for get, put in ((data.GetVerts, part.SetVerts), (data.GetPolys, part.SetPolys)):
        cells = get()
        ids = vtk_to_numpy(cells.GetConnectivityArray()).astype("int64")
        sizes = numpy.diff(vtk_to_numpy(cells.GetOffsetsArray()).astype("int64"))
        if not len(sizes):
            continue
        starts = numpy.concatenate([[0], numpy.cumsum(sizes)[:-1]])
        whole = numpy.logical_and.reduceat(keep[ids], starts)
        ends = numpy.concatenate([[0], numpy.cumsum(sizes[whole])])
        chosen = vtkCellArray()
        offsets = numpy_to_vtk(ends, deep=True, array_type=16)
        chosen.SetData(offsets, numpy_to_vtk(numbers[ids[numpy.repeat(whole, sizes)]], deep=True, array_type=16))
        put(chosen)
    source, target = data.GetPointData(), part.GetPointData()
    for k in range(source.GetNumberOfArrays()):
        array = numpy_to_vtk(vtk_to_numpy(source.GetArray(k))[keep], deep=True)
        array.SetName(source.GetArrayName(k))
        target.AddArray(array)
    return part


def on_walls(data):
    """True for the points of squares that share no point with another polygon: half-spaces are drawn so."""
    ids, sizes = polygons(data)
    uses = numpy.bincount(ids, minlength=data.GetNumberOfPoints())
    alone = numpy.zeros(data.GetNumberOfPoints(), dtype=bool)
    starts = numpy.concatenate([[0], numpy.cumsum(sizes)[:-1]]) if len(sizes) else []
    for start in numpy.asarray(starts, dtype="int64")[sizes == 4] if len(sizes) else []:
        corners = ids[start : start + 4]
        alone[corners] = (uses[corners] == 1).all()
    return alone


def scrambled(ids):
    """A number in [0, 1) for each id, the same in every picture."""
    with numpy.errstate(over="ignore"):
        mixed = ids.astype("uint64") * numpy.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> numpy.uint64(29)
        mixed *= numpy.uint64(0xBF58476D1CE4E5B9)
    return (mixed >> numpy.uint64(11)).astype("float64") / 2.0**53


def stone_colors(ids):
    pick = scrambled(ids)
    kind = (pick * len(STONES)).astype("int64")
    shade = 0.86 + 0.28 * scrambled(ids + 1)
    return numpy.clip(STONES[kind] * shade[:, None], 0, 255)


def group_colors(groups):
    return stone_colors(groups * 7 + 3) * numpy.array([1.0, 0.98, 0.95])


def heat_colors(values, top):
    place = numpy.clip(values / max(top, 1e-300), 0, 1) * (len(HEAT) - 1)
    low = numpy.minimum(place.astype("int64"), len(HEAT) - 2)
    return HEAT[low] + (place - low)[:, None] * (HEAT[low + 1] - HEAT[low])


def paint(data, options):
    """Adds the colours of the points; returns the upper end of the scale of speeds, if there is one."""
    top = None
    if options.color == "speed":
        speeds = column(data, "speed")
        if speeds is None:
            velocity = column(data, "velocity")
            if velocity is None:
                fail("the file has neither speed nor velocity")
            speeds = numpy.linalg.norm(velocity, axis=1)
        top = options.fastest or float(speeds.max(initial=0.0)) or 1.0
        colors = heat_colors(speeds.astype("float64"), top)
    else:
        name = "id" if options.color == "stone" else "group"
        values = column(data, name)
        values = numpy.zeros(data.GetNumberOfPoints(), dtype="int64") if values is None else values
        colors = stone_colors(values) if name == "id" else group_colors(values)
    array = numpy_to_vtk(colors.astype("uint8"), deep=True)
    array.SetName("color")
    data.GetPointData().AddArray(array)
    return top


def matt(actor, opacity=1.0):
    look = actor.GetProperty()
    look.SetAmbient(0.32)
    look.SetDiffuse(0.95)
    look.SetSpecular(0.04)
    look.SetSpecularPower(8)
    look.SetOpacity(opacity)
    return actor


def surface(data, opacity):
    """Faces with sharp edges; fine triangulations of spheres look round."""
    normals = vtkPolyDataNormals()
    normals.SetInputData(data)
    normals.SetFeatureAngle(30.0)
    normals.SplittingOn()
    normals.ConsistencyOff()
    mapper = vtkPolyDataMapper()
    mapper.SetInputConnection(normals.GetOutputPort())
    mapper.SetScalarModeToUsePointFieldData()
    mapper.SelectColorArray("color")
    actor = vtkActor()
    actor.SetMapper(mapper)
    return matt(actor, opacity)


def balls(data, opacity):
    """Points with a radius, as spheres."""
    source = vtkSphereSource()
    source.SetRadius(1.0)
    resolution = 24 if data.GetNumberOfPoints() < 20000 else 10
    source.SetThetaResolution(resolution)
    source.SetPhiResolution(resolution)
    mapper = vtkGlyph3DMapper()
    mapper.SetInputData(data)
    mapper.SetSourceConnection(source.GetOutputPort())
    mapper.SetScaleArray("radius")
    mapper.SetScaleModeToScaleByMagnitude()
    mapper.SetScaleFactor(1.0)
    mapper.SetScalarModeToUsePointFieldData()
    mapper.SelectColorArray("color")
    actor = vtkActor()
    actor.SetMapper(mapper)
    return matt(actor, opacity)


def chains(path, number, size):
    """Tubes between centres, their section in proportion to the normal force; the strongest are red."""
    data, _, _ = read(path, str(number))
    force = column(data, "normal_force")
    if force is None:
        fail(f"{path}: has no normal_force; write contacts as chains")
    if not len(force):
        return None
    strong = max(float(numpy.quantile(force, 0.99)), 1e-300)
    share = numpy.clip(force / strong, 0.0, 1.0)
    radius = numpy_to_vtk(size * 0.0095 * numpy.sqrt(share), deep=True)
    radius.SetName("tube")
    color = numpy_to_vtk(heat_colors(share * 0.8, 1.0).astype("uint8"), deep=True)
    color.SetName("color")
    data.GetPointData().AddArray(color)
    data.GetPointData().AddArray(radius)
    data.GetPointData().SetActiveScalars("tube")
    tubes = vtkTubeFilter()
    tubes.SetInputData(data)
    tubes.SetVaryRadiusToVaryRadiusByAbsoluteScalar()
    tubes.SetNumberOfSides(8)
    tubes.CappingOn()
    mapper = vtkPolyDataMapper()
    mapper.SetInputConnection(tubes.GetOutputPort())
    mapper.SetScalarModeToUsePointFieldData()
    mapper.SelectColorArray("color")
    actor = vtkActor()
    actor.SetMapper(mapper)
    return matt(actor)


def floor(height, centre, size):
    plane = vtkPlaneSource()
    far = 12.0 * size
    plane.SetOrigin(centre[0] - far, centre[1] - far, height)
    plane.SetPoint1(centre[0] + far, centre[1] - far, height)
    plane.SetPoint2(centre[0] - far, centre[1] + far, height)
    mapper = vtkPolyDataMapper()
    mapper.SetInputConnection(plane.GetOutputPort())
    actor = vtkActor()
    actor.SetMapper(mapper)
    look = actor.GetProperty()
    look.SetColor(0.93, 0.93, 0.92)
    look.SetAmbient(0.55)
    look.SetDiffuse(0.45)
    return actor


def cut(corners, origin, inward):
    """The part of a convex polygon on one side of a plane."""
    kept = []
    sides = (corners - origin) @ inward
    for k in range(len(corners)):
        a, b = sides[k - 1], sides[k]
        if (a < 0) != (b < 0):
            kept.append(corners[k - 1] + (corners[k] - corners[k - 1]) * a / (a - b))
        if b >= 0:
            kept.append(corners[k])
    return numpy.array(kept).reshape(-1, 3)


def walls(data, extent, size):
    """The squares of half-spaces cut by each other and by a box around the bodies; only those that face the camera."""
    ids, _ = polygons(data)
    squares = positions(data)[ids].reshape(-1, 4, 3)
    normals = numpy.cross(squares[:, 1] - squares[:, 0], squares[:, 2] - squares[:, 1])
    normals /= numpy.linalg.norm(normals, axis=1)[:, None]
    planes = list(zip(squares[:, 0], normals))
    planes += [(extent.min(axis=0) - 0.02 * size, axis) for axis in numpy.eye(3)]
    planes += [(extent.max(axis=0) + 0.02 * size, -axis) for axis in numpy.eye(3)]
    points, cells = vtkPoints(), vtkCellArray()
    for number, corners in enumerate(squares):
        for other, (origin, inward) in enumerate(planes):
            if other != number and len(corners):
                corners = cut(corners, origin, inward)
        if len(corners) > 2:
            cells.InsertNextCell(len(corners))
            for corner in corners:
                cells.InsertCellPoint(points.InsertNextPoint(*corner))
    cutting = vtkPolyData()
    cutting.SetPoints(points)
    cutting.SetPolys(cells)
    mapper = vtkPolyDataMapper()
    mapper.SetInputData(cutting)
    actor = vtkActor()
    actor.SetMapper(mapper)
    look = actor.GetProperty()
    look.SetColor(0.83, 0.86, 0.89)
    look.SetAmbient(0.5)
    look.SetDiffuse(0.5)
    look.BackfaceCullingOn()
    return actor


def aim(renderer, points, options, width, height):
    """The camera as near as it can be with every point in the picture."""
    turn, rise = math.radians(options.azimuth), math.radians(min(max(options.elevation, -89.0), 89.0))
    back = numpy.array([math.cos(turn) * math.cos(rise), math.sin(turn) * math.cos(rise), math.sin(rise)])
    right = numpy.cross([0.0, 0.0, 1.0], back)
    right /= numpy.linalg.norm(right)
    up = numpy.cross(back, right)
    half = math.radians(14.0)
    focus = (points.min(axis=0) + points.max(axis=0)) / 2
    tangent = numpy.array([math.tan(half) * width / height, math.tan(half)]) * 0.90
    # Moving the focus to the middle of what is seen changes what is seen a little: a few rounds settle it.
    for _ in range(8):
        across = numpy.stack([(points - focus) @ right, (points - focus) @ up], axis=1)
        depth = (points - focus) @ back
        distance = max(float((numpy.abs(across) / tangent + depth[:, None]).max()), 1e-6)
        seen = across / (distance - depth)[:, None]
        middle = (seen.min(axis=0) + seen.max(axis=0)) / 2 * distance
        focus = focus + middle[0] * right + middle[1] * up
    camera = renderer.GetActiveCamera()
    camera.SetViewAngle(2.0 * math.degrees(half))
    camera.SetFocalPoint(*focus)
    camera.SetPosition(*(focus + distance * back))
    camera.SetViewUp(*up)
    return back, right, up


def light(renderer, focus, size, back, right, up):
    """A warm sun over the left shoulder, a cool sky, a little from behind."""
    renderer.RemoveAllLights()
    renderer.AutomaticLightCreationOff()
    kinds = [
        (-0.7 * right + 1.1 * up + 0.8 * back, (1.0, 0.96, 0.90), 0.90),
        (0.9 * right + 0.3 * up + 0.7 * back, (0.82, 0.90, 1.0), 0.28),
        (0.2 * right + 0.8 * up - 1.0 * back, (1.0, 1.0, 1.0), 0.22),
    ]
    for direction, color, strength in kinds:
        lamp = vtkLight()
        lamp.SetLightTypeToSceneLight()
        lamp.PositionalOff()
        lamp.SetFocalPoint(*focus)
        lamp.SetPosition(*(numpy.asarray(focus) + size * 10.0 * direction))
        lamp.SetColor(*color)
        lamp.SetIntensity(strength)
        renderer.AddLight(lamp)


def scale_bar(top):
    table = vtkLookupTable()
    table.SetNumberOfTableValues(256)
    table.SetRange(0.0, top)
    for k, color in enumerate(heat_colors(numpy.linspace(0, 1, 256), 1.0) / 255.0):
        table.SetTableValue(k, *color, 1.0)
    bar = vtkScalarBarActor()
    bar.SetLookupTable(table)
    bar.SetTitle("speed in m/s")
    bar.SetNumberOfLabels(5)
    bar.SetLabelFormat("%.3g")
    bar.SetPosition(0.90, 0.25)
    bar.SetWidth(0.06)
    bar.SetHeight(0.5)
    bar.UnconstrainedFontSizeOn()
    for text in (bar.GetTitleTextProperty(), bar.GetLabelTextProperty()):
        text.SetColor(0.15, 0.15, 0.15)
        text.SetFontSize(22 * FINER)
        text.ItalicOff()
        text.BoldOff()
        text.ShadowOff()
    return bar


def label(time):
    text = vtkTextActor()
    text.SetInput(f"t = {time:.6g} s")
    text.SetPosition(30 * FINER, 24 * FINER)
    text.GetTextProperty().SetFontSize(30 * FINER)
    text.GetTextProperty().SetColor(0.2, 0.2, 0.2)
    return text


def soften(renderer, size):
    """Ambient occlusion: gaps between bodies, where light hardly comes, are dark."""
    occlusion = vtkSSAOPass()
    occlusion.SetRadius(0.10 * size)
    occlusion.SetBias(0.006 * size)
    occlusion.SetKernelSize(64)
    occlusion.BlurOn()
    occlusion.SetDelegatePass(vtkRenderStepsPass())
    renderer.SetPass(occlusion)


def save(window, path, width, height):
    grab = vtkWindowToImageFilter()
    grab.SetInput(window)
    grab.ReadFrontBufferOff()
    grab.Update()
    fine = vtk_to_numpy(grab.GetOutput().GetPointData().GetScalars())
    fine = fine.reshape(height, FINER, width, FINER, -1).astype("float64")
    colors = numpy.rint(fine.mean(axis=(1, 3))).astype("uint8").reshape(width * height, -1)
    image = vtkImageData()
    image.SetDimensions(width, height, 1)
    image.GetPointData().SetScalars(numpy_to_vtk(colors, deep=True))
    writer = vtkPNGWriter()
    writer.SetFileName(str(path))
    writer.SetInputData(image)
    writer.Write()
    if writer.GetErrorCode() or not path.is_file():
        fail(f"{path}: cannot be written")


def main():
    options = arguments()
    # Without a display VTK says so, and then takes another way.
    vtkLogger.SetStderrVerbosity(vtkLogger.VERBOSITY_ERROR)
    try:
        width, height = (int(number) for number in options.size.lower().split("x"))
    except ValueError:
        fail(f"--size is WIDTHxHEIGHT, not {options.size!r}")
    path = options.result / "bodies.vtkhdf" if options.result.is_dir() else options.result
    data, time, number = read(path, options.step)
    flat = on_walls(data) if data.GetNumberOfPoints() else numpy.zeros(0, dtype=bool)
    groups = column(data, "group")
    shown = ~flat if groups is None else ~flat & ~numpy.isin(groups, options.hide_group)
    if not shown.any():
        fail(f"{path}: frame {number} has no bodies to show")
    bodies = select(data, shown)
    top = paint(bodies, options)
    points = positions(bodies)
    radii = column(bodies, "radius")
    reach = numpy.zeros((1, 1)) if radii is None else radii[:, None]
    extent = numpy.concatenate([points - reach, points + reach])
    size = float(numpy.linalg.norm(extent.max(axis=0) - extent.min(axis=0)))
    centre = (extent.min(axis=0) + extent.max(axis=0)) / 2

    renderer = vtkRenderer()
    renderer.SetBackground(0.96, 0.96, 0.95)
    opacity = 0.10 if options.chains else 1.0
    if bodies.GetNumberOfPolys():
        renderer.AddActor(surface(bodies, opacity))
    if radii is not None and (radii > 0).any():
        renderer.AddActor(balls(select(bodies, radii > 0), opacity))
    if options.walls != "hidden" and flat.any():
        renderer.AddActor(walls(select(data, flat), extent, size))
    if not options.no_floor:
        renderer.AddActor(floor(extent[:, 2].min() - 0.0005 * size, centre, size))
    if options.chains:
        lines = chains(options.chains, number, size)
        if lines is not None:
            renderer.AddActor(lines)
    if top is not None:
        renderer.AddViewProp(scale_bar(top))
    if options.label:
        renderer.AddViewProp(label(time))

    window = vtkRenderWindow()
    window.SetOffScreenRendering(1)
    window.SetMultiSamples(0)
    window.SetSize(FINER * width, FINER * height)
    window.AddRenderer(renderer)
    light(renderer, centre, size, *aim(renderer, extent, options, width, height))
    if options.chains:
        renderer.SetUseDepthPeeling(1)
        renderer.SetMaximumNumberOfPeels(6)
        window.SetAlphaBitPlanes(1)
    else:
        soften(renderer, size)
    renderer.ResetCameraClippingRange()
    window.Render()
    save(window, options.out, width, height)
    print(f"{options.out}: frame {number}, t = {time:.6g} s")


if __name__ == "__main__":
    main()
