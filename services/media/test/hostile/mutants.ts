import { seededRandom } from '@services/common/testing/seeded-random'

type Mutation = (bytes: Buffer, random: (below: number) => number, other: Buffer) => Buffer

/** Sizes, counts and times that readers of formats are wrong about. */
const NASTY_WORDS = [0, 1, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff]
/** Where the words that matter come after: boxes of mp4, and the two-byte ids of Matroska do by chance. */
const PLACES = ['mvhd', 'tkhd', 'mdhd', 'stsd', 'stts', 'stss', 'ctts', 'stsc', 'stsz', 'stco', 'elst', 'avcC', 'hvcC']

const mutations = {
  'cut short': (bytes, random) => bytes.subarray(0, random(bytes.length)),
  'bits flipped': (bytes, random) => {
    const copy = Buffer.from(bytes)
    for (let n = 1 << random(9); n > 0; n--) flipBit(copy, random(copy.length * 8))
    return copy
  },
  'bits flipped in its beginning': (bytes, random) => {
    const copy = Buffer.from(bytes)
    for (let n = 1 + random(8); n > 0; n--) flipBit(copy, random(Math.min(copy.length, 600) * 8))
    return copy
  },
  'a word replaced': (bytes, random) => {
    const copy = Buffer.from(bytes)
    for (let n = 1 + random(3); n > 0; n--) {
      const word = NASTY_WORDS[random(NASTY_WORDS.length)] as number
      copy.writeUInt32BE(word, random(copy.length - 4))
    }
    return copy
  },
  'a word of its index replaced': (bytes, random) => {
    const copy = Buffer.from(bytes)
    const found = copy.indexOf(PLACES[random(PLACES.length)] as string)
    const from = found < 0 ? random(Math.min(200, copy.length - 4)) : found - 4 + 4 * random(12)
    copy.writeUInt32BE(NASTY_WORDS[random(NASTY_WORDS.length)] as number, Math.min(copy.length - 4, Math.max(0, from)))
    return copy
  },
  'a part blanked': (bytes, random) => {
    const start = random(bytes.length)
    return Buffer.from(bytes).fill(random(2) * 255, start, start + random(bytes.length - start))
  },
  'a part left out': (bytes, random) => {
    const start = random(bytes.length)
    return Buffer.concat([bytes.subarray(0, start), bytes.subarray(start + random(200))])
  },
  'a part repeated': (bytes, random) => {
    const start = random(bytes.length)
    const part = bytes.subarray(start, start + 1 + random(400))
    return Buffer.concat([bytes.subarray(0, start), ...Array(2 + random(60)).fill(part), bytes.subarray(start)])
  },
  'the end of another': (bytes, random, other) =>
    Buffer.concat([bytes.subarray(0, random(bytes.length)), other.subarray(random(other.length))]),
} satisfies Record<string, Mutation>

export interface Mutant {
  /** Says how to make it again: seed, number, source and what was done to it. */
  name: string
  bytes: Buffer
}

/**
 * So many damaged copies of the sources, the same ones for the same seed. Of six sources, 18 copies have each mutation
 * on two of them, 54 each on all.
 */
export function* mutantsOf(sources: Record<string, Buffer>, seed: number, count: number): Generator<Mutant> {
  const names = Object.keys(sources)
  const kinds = Object.keys(mutations) as (keyof typeof mutations)[]
  for (let number = 0; number < count; number++) {
    const uniform = seededRandom(seed * 1_000_003 + number)
    const random = (below: number) => Math.floor(uniform() * below)
    const name = names[number % names.length] as string
    const other = sources[names[random(names.length)] as string] as Buffer
    const kind = kinds[(number + Math.floor(number / 18)) % kinds.length] as keyof typeof mutations
    const bytes = (mutations[kind] as Mutation)(sources[name] as Buffer, random, other)
    yield { name: `mutant ${seed}/${number} of ${name}: ${kind}`, bytes }
  }
}

function flipBit(bytes: Buffer, bit: number): void {
  bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7))
}
