#!/usr/bin/env python3
"""Makes the small picture files that tests/data reads, with Pillow: python3 tools/make_test_images.py tests/data/files"""
import io
import os
import struct
import sys
import zlib

from PIL import Image


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(width, height, depth, color, rows, palette=None, transparency=None):
    """A PNG from raw rows of bytes, for depths that Pillow does not write."""
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0))
    if palette:
        data += chunk(b"PLTE", palette)
    if transparency:
        data += chunk(b"tRNS", transparency)
    return data + chunk(b"IDAT", zlib.compress(b"".join(b"\0" + r for r in rows))) + chunk(b"IEND", b"")


def jpeg_exif(order, orientation):
    """A JPEG 16 wide, 8 high, left half black, right half white, with an EXIF orientation."""
    image = Image.new("L", (16, 8))
    image.paste(255, (8, 0, 16, 8))
    out = io.BytesIO()
    image.save(out, "JPEG", quality=95)
    e = "<" if order == b"II" else ">"
    tiff = order + struct.pack(e + "HIH", 42, 8, 1) + struct.pack(e + "HHIHHI", 0x0112, 3, 1, orientation, 0, 0)
    body = b"Exif\0\0" + tiff
    raw = out.getvalue()
    return raw[:2] + b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body + raw[2:]


def main():
    folder = sys.argv[1]
    files = {
        "grey16.png": png(5, 1, 16, 0, [struct.pack(">5H", 0, 0x00FF, 0x0100, 0x8000, 0xFFFF)]),
        "grey1.png": png(2, 1, 1, 0, [bytes([0b01000000])]),
        "grey2.png": png(2, 1, 2, 0, [bytes([0b00110000])]),
        "grey4.png": png(2, 1, 4, 0, [bytes([0x0F])]),
        "grey_alpha.png": png(1, 1, 8, 4, [bytes([200, 128])]),
        "palette.png": png(2, 1, 8, 3, [bytes([0, 1])], palette=bytes([10, 20, 30, 40, 50, 60]), transparency=bytes([0, 255])),
        "rgb.png": png(2, 1, 8, 2, [bytes([1, 2, 3, 4, 5, 6])]),
    }
    for order in (b"II", b"MM"):
        for orientation in (1, 2, 3, 6, 8):
            files[f"exif_{order.decode()}_{orientation}.jpg"] = jpeg_exif(order, orientation)
    cut = bytearray(jpeg_exif(b"II", 6))
    cut[16:20] = b"\xff\xff\xff\x7f"  # the offset of the directory, beyond the block
    files["exif_beyond.jpg"] = bytes(cut)
    out = io.BytesIO()
    Image.new("CMYK", (8, 8), (0, 255, 255, 0)).save(out, "JPEG")
    files["cmyk.jpg"] = out.getvalue()
    for name, data in files.items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)


if __name__ == "__main__":
    main()
