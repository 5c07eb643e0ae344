"""Preparation of images for all frameworks: size, channels, standardisation, and balanced subsets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchlib.errors import BenchlibError


@dataclass(frozen=True)
class Images:
    """A data set as its loader gives it: images uint8 (n, height, width, channels) and labels int32 (n,) from 0."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray
    source: str  # where the images were read
    note: str  # a remark to put beside every accuracy; "" where there is none


def fit_to_size(images: np.ndarray, size: int) -> tuple[np.ndarray, int]:
    """Square images (n, h, h, channels) for ``size`` pixels a side, and the number of times to repeat each pixel in
    both directions. Areas are averaged (float32) for a smaller size. For a larger one, ``Batches`` repeats pixels when
    it makes a batch: CIFAR-10 at 224 pixels would be 36 GB.

    >>> image = np.array([[[[1], [2]], [[3], [4]]]], dtype=np.uint8)
    >>> fit_to_size(image, 1)
    (array([[[[2.5]]]], dtype=float32), 1)
    >>> fit_to_size(image, 6)[1]
    3
    """
    count, height, _, channels = images.shape
    if size % height == 0:
        return images, size // height
    if height % size == 0:
        area = height // size
        return images.reshape(count, size, area, size, area, channels).mean(axis=(2, 4), dtype=np.float32), 1
    raise BenchlibError(
        f"image_size {size}: images of {height}x{height} pixels can only be enlarged or reduced by a whole number"
    )


def standardise(train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[float], list[float]]:
    """Images (n, height, width, 1 or 3) as float32 (n, 3, height, width), and the means and standard deviations. Each
    channel gets mean 0 and deviation 1 over ``train``. One channel becomes three equal ones.
    """
    means, deviations = [], []
    outputs = [np.empty((len(split), 3, *split.shape[1:3]), dtype=np.float32) for split in (train, test)]
    for channel in range(3):
        of = min(channel, train.shape[-1] - 1)
        plane = train[..., of].astype(np.float32)
        mean = float(plane.mean(dtype=np.float64))
        plane -= mean
        deviation = float(np.sqrt(np.square(plane).mean(dtype=np.float64)))
        outputs[0][:, channel] = plane / deviation
        outputs[1][:, channel] = (test[..., of].astype(np.float32) - mean) / deviation
        means.append(mean)
        deviations.append(deviation)
    return outputs[0], outputs[1], means, deviations


def balanced_order(labels: np.ndarray, seed: int) -> np.ndarray:
    """A seeded permutation whose every prefix has the classes in the proportions of the whole, as nearly as can be.

    >>> labels = np.array([0, 0, 0, 0, 1, 1])
    >>> labels[balanced_order(labels, seed=0)].tolist()
    [0, 1, 0, 0, 1, 0]
    """
    order = np.random.default_rng(seed).permutation(len(labels))
    shuffled = labels[order]
    place = np.empty(len(labels))
    for label in np.unique(labels):
        of_class = np.flatnonzero(shuffled == label)
        place[of_class] = (np.arange(len(of_class)) + 0.5) / len(of_class)
    return order[np.argsort(place, kind="stable")]
