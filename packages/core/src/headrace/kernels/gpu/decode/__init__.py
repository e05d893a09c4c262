"""Decode encoded images into device memory.

==================  ==============================================================================
module              job
==================  ==============================================================================
`batch`             a batch: who decodes which sample, and into what memory
`job`               what one decoder is to decode, and how that reaches its place
`plain`             the same for JPEG images that are as most are, all at once
`options`           how the decoders of a device are asked to work
`decoders`          the decoders that a thread has, and which of them gets an image
`engines`           the JPEG engines of a device
`engine_thread`     the thread that decodes by them, for all pipelines of a process
`engine_loop`       what it does from batch to batch, without the interpreter
`engine_lock`       lock of the engines, between processes
`nvjpeg`            what of nvJPEG's interface drives them
`nvimagecodec`      decoders of nvImageCodec for a device, and which samples they take
`host`              what they do not take: decoded on the CPU, in threads, and uploaded
`cache`             decoded images that stay in device memory for later epochs
`convert`           orientation, YCbCr and element types, once pixels are in device memory
==================  ==============================================================================
"""
