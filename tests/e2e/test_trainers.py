"""Trainers of other libraries over iterators: `hatch run trainers:run` has them installed."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

from headrace import fn, pipeline_def
from headrace.plugin.pytorch import DALIGenericIterator, DatasetSource, LastBatchPolicy

BATCH = 4


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    for k in range(10):
        (folder / f"{k}.bin").write_bytes(bytes([k, k]))
    return [str(folder / f"{k}.bin") for k in range(10)]


@pipeline_def(batch_size=BATCH, num_threads=2, device_id=None, seed=3)
def reading(files):
    data, label = fn.readers.file(
        files=files,
        labels=list(range(10)),
        name="reader",
        random_shuffle=True,
        pad_last_batch=True,
    )
    return data, label


@pipeline_def(batch_size=BATCH, num_threads=2, device_id=None)
def fed(source, how):
    data, label = fn.external_source(source=source, num_outputs=2, **how)
    return data, label


def from_reader(files, **options):
    return DALIGenericIterator(
        reading(files, **options),
        ["data", "label"],
        reader_name="reader",
        last_batch_policy=LastBatchPolicy.PARTIAL,
    )


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, k):
        return np.full(2, k, np.uint8), np.array([k], np.int32)


def batches():
    for k in range(3):
        numbers = np.arange(BATCH * k, min(BATCH * (k + 1), 10), dtype=np.int32)
        yield [np.full(2, n, np.uint8) for n in numbers], numbers[:, None]


def _lightning():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("lightning")


def trainer_and_model(root, epochs, **options):
    lightning = _lightning()

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)
            self.seen = []
            self.validated = 0

        def on_train_epoch_start(self):
            self.seen.append([])

        def training_step(self, batch, step):
            self.seen[-1] += batch[0]["label"].flatten().tolist()
            return self.layer(batch[0]["data"].float()).mean()

        def validation_step(self, batch, step):
            self.validated += len(batch[0]["label"])

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    keep = lightning.pytorch.callbacks.ModelCheckpoint(root, save_top_k=-1, filename="{epoch}")
    trainer = lightning.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[keep],
        num_sanity_val_steps=0,
        **options,
    )
    return trainer, Model()


def fit(root, epochs, loader, validation=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs
        trainer, model = trainer_and_model(root, epochs)
        trainer.fit(model, loader, validation, **options)
    return trainer, model


@pytest.mark.parametrize("checkpointing", [False, True])
def test_lightning_saves_and_resumes(files, tmp_path, checkpointing):
    options = {"enable_checkpointing": checkpointing}
    trainer, model = fit(tmp_path, 2, from_reader(files, **options))
    assert [sorted(epoch) for epoch in model.seen] == [list(range(10))] * 2
    assert model.seen[0] != model.seen[1], "the second epoch has an order of its own"
    assert trainer.num_training_batches == 3
    saved = tmp_path / "epoch=0.ckpt"
    assert saved.exists()
    assert (tmp_path / "epoch=1.ckpt").exists()
    _, again = fit(tmp_path, 3, from_reader(files, **options), ckpt_path=saved, weights_only=False)
    assert [sorted(epoch) for epoch in again.seen] == [list(range(10))] * 2


@pytest.mark.parametrize(
    ("source", "length"),
    [
        (batches, None),
        (list(batches()), 3),
        (DatasetSource(Squares(), BATCH), 3),
    ],
)
def test_lightning_trains_on_sources(tmp_path, source, length):
    how = {"batch_info": True} if isinstance(source, DatasetSource) else {"cycle": "raise"}
    loaders = [DALIGenericIterator(fed(source, how), ["data", "label"]) for _ in range(2)]
    trainer, model = fit(tmp_path, 2, *loaders)
    assert model.seen == [list(range(10))] * 2
    assert model.validated == 20, "once behind each epoch"
    assert trainer.num_training_batches == (float("inf") if length is None else length)


def test_lightning_is_told_of_no_state(files):
    _lightning()
    from lightning.fabric.utilities.types import _Stateful

    assert not isinstance(from_reader(files), _Stateful)
    assert isinstance(from_reader(files, enable_checkpointing=True), _Stateful)


def test_accelerate_prepares_loaders(files):
    accelerate = pytest.importorskip("accelerate")
    project = accelerate.utils.ProjectConfiguration(automatic_checkpoint_naming=False)
    accelerator = accelerate.Accelerator(cpu=True, project_config=project)
    loader = from_reader(files, enable_checkpointing=True)
    accelerator.register_for_checkpointing(loader)
    with pytest.raises(ValueError, match="must include a"):
        accelerator.register_for_checkpointing(from_reader(files))
