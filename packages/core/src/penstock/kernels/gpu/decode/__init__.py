"""Decode encoded images into device memory.

==================  ==============================================================================
module              job
==================  ==============================================================================
`batch`             a batch: who decodes which sample, and into what memory
`options`           how the decoders of a device are asked to work
`nvimagecodec`      decoders of nvImageCodec for a device, and which samples they take
`host`              what they do not take: decoded on the CPU, in threads, and uploaded
`cache`             decoded images that stay in device memory for later epochs
`convert`           orientation, YCbCr and element types, once pixels are in device memory
==================  ==============================================================================
"""
