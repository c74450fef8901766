/** Adds boxes to the first picture's sample entry of an mp4 whose `moov` is behind its pictures. */
export function withSampleBoxes(mp4: Buffer, boxes: readonly Buffer[]): Buffer {
  const added = Buffer.concat(boxes)
  const heads: number[] = []
  let [from, to] = [0, mp4.length]
  for (const type of ['moov', 'trak', 'mdia', 'minf', 'stbl', 'stsd']) {
    let at = from
    while (at < to && mp4.toString('latin1', at + 4, at + 8) !== type) at += mp4.readUInt32BE(at)
    heads.push(at)
    ;[from, to] = [at + 8, at + mp4.readUInt32BE(at)]
  }
  const entry = from + 8
  const end = entry + mp4.readUInt32BE(entry)
  const bytes = Buffer.concat([mp4.subarray(0, end), added, mp4.subarray(end)])
  for (const at of [...heads, entry]) bytes.writeUInt32BE(bytes.readUInt32BE(at) + added.length, at)
  return bytes
}

export function box(type: string, ...data: (Buffer | string)[]): Buffer {
  const bytes = Buffer.concat([
    Buffer.from(type, 'latin1'),
    ...data.map((part) => Buffer.from(part as string, 'latin1')),
  ])
  const size = Buffer.alloc(4)
  size.writeUInt32BE(4 + bytes.length)
  return Buffer.concat([size, bytes])
}

const words = (values: readonly number[], bytes: 2 | 4) => {
  const data = Buffer.alloc(bytes * values.length)
  for (const [n, value] of values.entries()) data.writeUIntBE(value, bytes * n, bytes)
  return data
}

/** Brightness for which a film was graded (ISO 14496-12, 12.1.5 and 12.1.6): 1000 cd/m2. */
export const mastering = [
  box('mdcv', words([13_250, 34_500, 7_500, 3_000, 34_000, 16_000, 15_635, 16_450], 2), words([10_000_000, 1], 4)),
  box('clli', words([1000, 400], 2)),
]

/** Left and right views beside each other. */
export const stereo = [box('st3d', words([0], 4), Buffer.of(2))]

/** A whole sphere, in equal steps of both angles. */
export const spherical = [
  box(
    'sv3d',
    box('svhd', words([0], 4), 'camera\0'),
    box('proj', box('prhd', words([0, 0, 0, 0], 4)), box('equi', words([0, 0, 0, 0, 0], 4))),
  ),
]

/** An H.264 stream (Annex B) with a pair of closed captions (CEA-608, in ATSC A/53) before each picture. */
export function withCaptions(stream: Buffer): Buffer {
  const captions = Buffer.from('0000000106040eb500314741393403c1fffc942cff80', 'hex')
  const parts: Buffer[] = []
  let from = 0
  for (let at = stream.indexOf(START); at !== -1; at = stream.indexOf(START, at + 3)) {
    const type = (stream[at + 3] ?? 0) & 31
    if (type !== 1 && type !== 5) continue
    const begin = stream[at - 1] === 0 ? at - 1 : at
    parts.push(stream.subarray(from, begin), captions)
    from = begin
  }
  return Buffer.concat([...parts, stream.subarray(from)])
}

const START = Buffer.of(0, 0, 1)

export const colorProfile = (icc: Buffer) => [box('colr', 'prof', icc)]
