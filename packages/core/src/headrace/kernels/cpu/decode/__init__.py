"""Decode encoded images: headers, back ends, colour and type conversion.

==================  ==============================================================================
module              job
==================  ==============================================================================
`header`            format, size, channels, type and orientation of an image, without decoding it
`*_header`          the same for one format
`exif`              the orientation in a block of EXIF data
`backend`           which libraries decode, chosen once for the process
`jpeg`              whole JPEG images with libjpeg-turbo, by simplejpeg
`nvimagecodec`      every format and regions of images, on the CPU, by nvImageCodec
`nvimagecodec_library`  the library itself: loading it, its decoders, records of its header
`opencv_codecs`     every format by OpenCV, where nvImageCodec does not exist or gives up
`convert`           YCbCr and element types, once pixels are there
`diagnosis`         why an image could not be decoded, in words
==================  ==============================================================================
"""

from headrace._lazy_module import lazy_submodules

__getattr__ = lazy_submodules(__name__)
