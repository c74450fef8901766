import fc from 'fast-check'

/** What has broken services before: text that storage, templates, parsers and prototypes stumble over. */
const HOSTILE_TEXTS = [
  '',
  ' ',
  '\0',
  'a\0@example.com',
  '\ud800',
  'half \udfff character',
  '😀'.repeat(70),
  'ﷺ'.repeat(300),
  'x'.repeat(255),
  'x'.repeat(256),
  'x'.repeat(1_025),
  'x'.repeat(70_000),
  '__proto__',
  'constructor',
  'toString',
  "'; drop table users; --",
  "' or '1'='1",
  '$1',
  '%s%n',
  '{{ .Token }}',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a template's placeholder is what it is
  '${7*7}',
  '<script>alert(1)</script>',
  '\r\nset-cookie: a=b',
  '../../etc/passwd',
  'NaN',
  'Infinity',
  '-1',
  '1e308',
  '9007199254740993',
  '99999999999999999999',
  '0x10',
  '00000000-0000-0000-0000-000000000000',
  'https://ada:secret@site.example/',
  'https://site.example\\@evil.example/',
  'javascript:alert(1)',
  'https://[::1',
  'https://site.example/%',
  '2024-13-45T99:99:99Z',
  '0001-01-01T00:00:00Z',
  '+999999-12-31T23:59:59Z',
]

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
  fc.constantFrom(
    '',
    ' ',
    '{',
    '{"email":',
    '{}',
    '[]',
    '[{}]',
    'null',
    'true',
    '0',
    '1e999',
    '{"data":{"a":1e999}}',
    '"text"',
    '\ufeff{}',
    'a=b&c=d',
    '{"__proto__":{"admin":true}}',
    '{"data":{"constructor":{"prototype":{"admin":true}}}}',
    '{"email":"a@b.example","email":"c@d.example"}',
    `{"data":${'['.repeat(50_000)}${']'.repeat(50_000)}}`,
    `{"email":"${'x'.repeat(1024 * 1024)}"}`,
  ),
  wrongValue.map((value) => JSON.stringify(value)),
)
