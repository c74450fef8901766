import { describe, expect, test } from 'vitest'
import { baseUrl, boolean, type ConfigError, httpUrl, integer, oneOf, readVariables, text } from './variables.ts'

const read = (value: string) =>
  readVariables({ BASE: baseUrl('', { required: true }) }, 'X_', { X_BASE: value }).values.BASE
const readAny = (value: string) =>
  readVariables({ URL: httpUrl('', { required: true }) }, 'X_', { X_URL: value }).values.URL

describe('a base URL', () => {
  test.each([
    ['https://media.example', 'https://media.example'],
    ['HTTP://127.0.0.1:8082/', 'HTTP://127.0.0.1:8082'],
    ['https://example.com/media//', 'https://example.com/media'],
    ['https://[::1]:8082/a@b', 'https://[::1]:8082/a@b'],
  ])('%s is kept without trailing slashes', (value, expected) => {
    expect(read(value)).toBe(expected)
  })

  test.each([
    'https://media.example?',
    'https://media.example/?key=hunter2',
    'https://media.example/#',
    'https://media.example/#hunter2',
    'https://hunter2@media.example',
    'https://media:hunter2@media.example/',
    'https://@media.example',
    'https://:@media.example',
    'https://media.example/ ',
    'https://media.example/hunter2 x',
    'https://media.example\\@hunter2.example',
    'https://',
    'https:media.example',
    'ftp://media.example',
    '/media',
  ])('%j is reported by name, never by value', (value) => {
    const problem = refusalOf(() => read(value))
    expect(problem).toMatch(/^X_BASE must be an absolute http or https URL/)
    expect(problem).not.toContain('hunter2')
  })
})

test('a URL to which nothing is appended may have a query, but no credentials and no fragment', () => {
  expect(readAny('https://captcha.example/verify?v=2')).toBe('https://captcha.example/verify?v=2')
  for (const value of ['https://a:b@captcha.example/', 'https://captcha.example/#x']) {
    expect(refusalOf(() => readAny(value))).toMatch(/^X_URL must be/)
  }
})

const some = {
  SECRET: text(''),
  ON: boolean('', { default: 'false' }),
  LEVEL: oneOf(['low', 'high'], '', { default: 'low' }),
  COUNT: integer('', { default: '1' }),
}

test.each(['\n', '\r\n', '\n\n'])('%j at the end of a value is dropped', (end) => {
  const environment = { X_SECRET: `two\nlines ${end}`, X_ON: `true${end}`, X_LEVEL: `high${end}`, X_COUNT: end }
  const expected = { SECRET: 'two\nlines ', ON: true, LEVEL: 'high', COUNT: 1 }
  expect(readVariables(some, 'X_', environment).values).toEqual(expected)
  expect(readVariables(some, 'X_', {}, environment).values).toEqual(expected)
})

test('a problem mentions white space around the value', () => {
  expect(refusalOf(() => readVariables(some, 'X_', { X_ON: 'true ' }))).toBe(
    'X_ON must be true or false; the value begins or ends with white space',
  )
  expect(refusalOf(() => readVariables(some, 'X_', { X_ON: 'ja' }))).toBe('X_ON must be true or false')
})

test('a misspelt name is reported beside missing and wrong values', () => {
  const required = { SECRET: text('the secret', { required: true }), ON: boolean('', { default: 'false' }) }
  expect(refusalsOf(() => readVariables(required, 'X_', { X_SECRT: 'hunter2', X_ON: 'ja' }))).toEqual([
    'X_SECRET is required: the secret',
    'X_ON must be true or false',
    'X_SECRT is not a known variable; the nearest known one is X_SECRET',
  ])
})

const refusalOf = (reading: () => unknown) => refusalsOf(reading)?.join()

function refusalsOf(reading: () => unknown): readonly string[] | undefined {
  try {
    reading()
    return undefined
  } catch (error) {
    return (error as ConfigError).problems
  }
}
