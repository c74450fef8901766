/**
 * An mp4 whose headers and first pictures are right, which satisfies the probe. Its other pictures are noise, which
 * fails the transcode.
 */
export function scrambled(mp4: Buffer): Buffer {
  const copy = Buffer.from(mp4)
  const start = copy.indexOf('mdat') + 4
  const end = start - 8 + copy.readUInt32BE(start - 8)
  return copy.fill(0x5a, start + Math.floor((end - start) / 4), end)
}
