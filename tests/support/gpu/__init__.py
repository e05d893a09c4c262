"""GPU code on machines without a GPU.

Everything below ``tests/gpu`` runs on an `EmulatedRuntime` (``runtime.py``), and a second time on a
real GPU where there is one; an autouse fixture installs both as GPU 0. Kernels are the same text in
both cases, built by g++ or by NVRTC.

An operator, compared with its CPU side::

    from tests.support.gpu.run_operator import run_cpu_operator_on_batch, run_gpu_operator


    def test_flip():
        images = [rng.integers(0, 256, (h, w, 3), np.uint8) for h, w in ((4, 5), (1, 1))]
        where = [np.array(i % 2) for i in range(2)]  # a list of arrays: one value a sample
        for got, expected in zip(
            run_gpu_operator("flip", images, layout="HWC", horizontal=where),
            run_cpu_operator_on_batch("flip", images, layout="HWC", horizontal=where),
            strict=True,
        ):
            np.testing.assert_array_equal(got, expected)

A kernel by itself::

    from tests.support.gpu.session import gpu_session


    def test_fill():
        with gpu_session() as s:
            batch = s.upload(images)  # or s.queue.empty(shapes, dtype)
            fill(s.queue, batch, 3)
            got = s.download(batch)  # waits

A pipeline needs nothing but ``device_id=0``.

What the emulated GPU finds that a real one may not:

* **Late streams.** Queued work runs when somebody synchronizes, and not before. A missing wait, or
  memory that is used anew too early, gives wrong values every time. ``EmulatedRuntime(late=False)``
  runs it at once.
* **The order of work.** A copy, a fill or a launch on one stream that touches what another stream
  writes by a copy or a fill, without a wait between them, is refused, whatever has run already.
* The rules of CUDA: work is queued where the device is current, streams belong to a device until
  they are destroyed, the legacy default stream (1) and blocking streams (`new_stream`, 2) wait for
  one another, and only a copy with ``may_wait`` goes to memory that is not page-locked.
* Fresh memory is full of ``0xFD`` (a half NaN, a huge float, 253); writes beyond a piece of memory
  or to freed memory are found when it is freed or at the end of the test. In a `gpu_session` every
  piece is exactly as long as asked for, and with ``scattered=True`` each sample has its own, at an
  address that is aligned to its elements and no better.
* Arguments of launches must be NumPy scalars of exactly the types of the parameters.
* Misaligned accesses, indices beyond a (shared) array, shifts by too many bits, division by zero
  and divergent barriers end the launch with the line of the program.
* Threads run in turn, forwards in even blocks and backwards in odd ones, so that a missing barrier
  shows. Dynamic shared memory is ``0xFD`` at the begin of each block.

What it does not: speed, memory order, too many registers, the last bits of ``expf`` and its like. A
conversion of a float beyond the range of an integer by a cast is undefined here (a GPU keeps the
limits): use ``__float2int_rn`` and its like, which keep them everywhere.

``tests/gpu/kernels/expressions.txt`` has one of each kernel (``recording.py`` renews it). NVRTC,
where it is installed, compiles those for two generations of GPUs, and for all in nightly runs
(``nvrtc.py``; warnings are errors). With ``HEADRACE_TEST_NVRTC=each``, as `test:gpu` has it,
it compiles whatever a module has launched, too. ``tests/gpu/test_sanitized.py`` repeats some tests
with the address sanitizer: the first of each module about kernels, and those marked ``sanitize``.

Switches: ``HEADRACE_REQUIRE_GPU=1`` fails without a real GPU, ``HEADRACE_REQUIRE_NVRTC=1`` without
the compiler; ``HEADRACE_TEST_CACHE`` is the folder for what was built.

Kernels get dynamic shared memory by ``DYNAMIC_SHARED(float, tile);`` in both worlds.
"""
