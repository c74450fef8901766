/**
 * An mp4 whose headers and first pictures are right, so that the probe is content, and whose other pictures are noise, so
 * that the transcode is not.
 */
export function scrambled(mp4: Buffer): Buffer {
  const copy = Buffer.from(mp4)
  const start = copy.indexOf('mdat') + 4
  const end = start - 8 + copy.readUInt32BE(start - 8)
  return copy.fill(0x5a, start + Math.floor((end - start) / 4), end)
}
