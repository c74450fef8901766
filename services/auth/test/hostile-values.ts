import { HOSTILE_BODIES, HOSTILE_TEXTS } from '@services/common/testing/http/hostile-values'
import fc from 'fast-check'

export const hostileText = fc.oneof(
  fc.constantFrom(...HOSTILE_TEXTS),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.string({ unit: 'grapheme', maxLength: 40 }),
)

const number = fc.oneof(
  fc.constantFrom(0, -0, -1, 1.5, 1e308, -1e308, 5e-324, 2 ** 31, 2 ** 53 + 2, 2 ** 63),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
)

/** JSON of a depth that parsers survive and storage may not. */
const deep = fc.constantFrom(99, 101, 3_000).map((depth) => {
  let value: unknown = 1
  for (let i = 0; i < depth; i++) value = i % 2 ? [value] : { a: value }
  return value
})

const object = fc.dictionary(fc.oneof(hostileText, fc.string({ maxLength: 8 })), fc.jsonValue({ maxDepth: 2 }), {
  maxKeys: 4,
})

export const wrongValue: fc.Arbitrary<unknown> = fc.oneof(
  hostileText,
  number,
  fc.boolean(),
  fc.constant(null),
  fc.array(hostileText, { maxLength: 3 }),
  object,
  deep,
)

export const freeForm = fc.oneof(object, deep, fc.constant({ full_name: 'Ada', locale: 'de' }))

/** Whole bodies that are no object of the right kind, as they are sent. */
export const wrongBody = fc.oneof(
  fc.constantFrom(...HOSTILE_BODIES),
  wrongValue.map((value) => JSON.stringify(value)),
)
