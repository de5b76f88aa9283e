"""The natural-map error of frictional contact problems, in NumPy and from its definition, to hold breccia's against.

    python fclib_error.py make OUT.json      random problems with their errors: tests/data/fclib-errors.json
    python fclib_error.py file FILE...       the error of /solution/r of each FCLib file (needs h5py), one line each
"""

import json
import sys

import numpy as np


def project(vector, friction):
    """The nearest point of the cone |p_t| <= friction p_n, as the best of its candidates: the apex, the point itself, the surface."""
    tangential = np.linalg.norm(vector[1:])
    if tangential <= friction * vector[0]:
        return vector
    candidates = [np.zeros_like(vector)]
    if tangential > 0:
        # The ray of the surface nearest to the vector, and the foot of the perpendicular on it.
        ray = np.concatenate([[1.0], friction * vector[1:] / tangential]) / np.hypot(1.0, friction)
        candidates.append(max(0.0, ray @ vector) * ray)
    else:
        candidates.append(np.concatenate([[max(0.0, vector[0])], np.zeros(len(vector) - 1)]))
    return min(candidates, key=lambda point: np.linalg.norm(point - vector))


def error(w, q, friction, r, dimension):
    u = w @ r + q
    total = 0.0
    for contact, mu in enumerate(friction):
        part = slice(contact * dimension, (contact + 1) * dimension)
        shifted = u[part].copy()
        shifted[0] += mu * np.linalg.norm(u[part][1:])
        total += np.sum((r[part] - project(r[part] - shifted, mu)) ** 2)
    scale = max(np.linalg.norm(q), np.linalg.norm(r), np.linalg.norm(u))
    return np.sqrt(total) / scale if scale > np.finfo(float).eps else np.sqrt(total)


def make(path):
    random = np.random.default_rng(20261116)
    cases = []
    for case in range(60):
        dimension, contacts = 2 + case % 2, 1 + case % 4
        size = dimension * contacts
        root = random.normal(size=(size, size)) * 10.0 ** random.uniform(-2, 2)
        w = root @ root.T + 1e-3 * random.normal(size=(size, size))
        q = random.normal(size=size) * 10.0 ** random.uniform(-3, 3)
        r = random.normal(size=size) * 10.0 ** random.uniform(-3, 3)
        friction = random.uniform(0, 1.2, size=contacts) * (random.uniform(size=contacts) > 0.15)
        if case % 5 == 0:
            r[::dimension] = np.abs(r[::dimension])
        if case % 7 == 0:
            r[:] = 0.0
        cases.append({
            "dimension": dimension,
            "w": w.ravel().tolist(),
            "q": q.tolist(),
            "friction": friction.tolist(),
            "r": r.tolist(),
            "error": error(w, q, friction, r, dimension),
        })
    with open(path, "w") as out:
        out.write("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")


def read(path):
    import h5py

    with h5py.File(path) as file:
        group = file["fclib_local"]
        matrix = {name: data[:] for name, data in group["W"].items() if data.shape}
        rows, layout = int(matrix["m"][0]), int(matrix["nz"][0])
        w = np.zeros((rows, rows))
        first, second, values = matrix["p"], matrix["i"], matrix["x"]
        if layout == -2:
            for row in range(rows):
                for entry in range(first[row], first[row + 1]):
                    w[row, second[entry]] += values[entry]
        elif layout == -1:
            for column in range(rows):
                for entry in range(first[column], first[column + 1]):
                    w[second[entry], column] += values[entry]
        else:
            np.add.at(w, (second[:layout], first[:layout]), values[:layout])
        vectors = group["vectors"]
        dimension = int(group["spacedim"][0])
        return error(w, vectors["q"][:], vectors["mu"][:], file["solution/r"][:], dimension)


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2])
    else:
        for name in sys.argv[2:]:
            print(repr(float(read(name))))
