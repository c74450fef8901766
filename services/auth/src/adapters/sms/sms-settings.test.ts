import { expect, test } from 'vitest'
import { parseMoment, testCodeOf } from '../test-codes.ts'
import { isCountryAllowed, parseCountries } from './countries.ts'
import { parseChannel } from './parse-channel.ts'
import { parseSmsTemplate, smsText } from './sms-text.ts'
import { parseTestNumbers } from './test-numbers.ts'

test.for<[string, string, boolean]>([
  ['', '4915100000001', true],
  ['+49', '4915100000001', true],
  ['49, +43', '43660000001', true],
  ['+49', '18765550100', false],
  ['+1', '18765550100', true],
  ['+1,!+1876', '18765550100', false],
  ['!+1876,+1', '18765550100', false],
  ['+1,!+1876', '12125550100', true],
  ['+1,!+1876,+1876555', '18765550100', true],
  ['!+1876', '4915100000001', true],
  ['!+1876', '18765550100', false],
  ['+49', '4', false],
])('SMS_COUNTRIES %s: %s gets messages: %s', ([countries, phone, expected]) => {
  expect(isCountryAllowed(parseCountries(countries), phone)).toBe(expected)
})

test.for(['DE', '+', '+0', '+49 43', '++49', '+4915100000001234'])('SMS_COUNTRIES %s is none', (countries) => {
  expect(() => parseCountries(countries)).toThrow('must be calling codes')
})

test('a test number has its fixed code until the end, the last moment included', () => {
  const codes = parseTestNumbers(' +49 151 00000001:123456 , 15550001111=000000,')
  const validUntil = parseMoment('2030-01-31T01:00:00+01:00')
  const codeAt = (phone: string, time: string) => testCodeOf({ codes, validUntil }, phone, new Date(time))
  expect(codeAt('4915100000001', '2029-01-01T00:00:00Z')).toBe('123456')
  expect(codeAt('15550001111', '2030-01-31T00:00:00Z')).toBe('000000')
  expect(codeAt('15550001111', '2030-01-31T00:00:00.001Z')).toBeUndefined()
  expect(codeAt('15550001112', '2029-01-01T00:00:00Z')).toBeUndefined()
  expect(testCodeOf({ codes, validUntil: undefined }, '15550001111', new Date('2999-01-01T00:00:00Z'))).toBe('000000')
})

test.for(['4915100000001', '4915100000001:', '4915100000001:12345', '0151:123456', '4915100000001:12a456', 'a:b:c'])(
  'SMS_TEST_OTP %s is refused',
  (text) => {
    expect(() => parseTestNumbers(text)).toThrow('must be phone:code pairs')
  },
)

test.for(['1', 'May 2030', '2030-01-31', '2030-01-31T00:00:00', '2030-13-31T00:00:00Z'])(
  '%s is no RFC 3339',
  (text) => {
    expect(() => parseMoment(text)).toThrow('must be a time')
  },
)

test('the text is the template with the code in any position', () => {
  expect(smsText(parseSmsTemplate('Your code is {{ .Code }}'), '012345')).toBe('Your code is 012345')
  expect(smsText(parseSmsTemplate('{{.Code}} is it.\n@site.example #{{- .Code -}}'), '1')).toBe(
    '1 is it.\n@site.example #1',
  )
})

test.for<[string, string]>([
  ['Your code', 'must contain'],
  ['{{ .Code }} for {{ .Email }}', 'no other placeholder'],
  ['{{ .Code }} {{ range }}', 'no other placeholder'],
  [`{{ .Code }}${'x'.repeat(1_500)}`, 'at most'],
])('the template %s is refused', ([template, reason]) => {
  expect(() => parseSmsTemplate(template)).toThrow(reason)
})

test('channels are sms and, where a gateway has it, whatsapp', () => {
  const vonage = { providers: ['vonage'] }
  const twilio = { providers: ['vonage', 'twilio'] }
  expect([parseChannel(vonage, undefined), parseChannel(vonage, ''), parseChannel(vonage, 'sms')]).toEqual([
    'sms',
    'sms',
    'sms',
  ])
  expect(parseChannel(twilio, 'whatsapp')).toBe('whatsapp')
  const refused = expect.objectContaining({ code: 'validation_failed', status: 400 })
  expect(() => parseChannel(vonage, 'whatsapp')).toThrow(refused)
  expect(() => parseChannel(twilio, 'fax')).toThrow(refused)
})
