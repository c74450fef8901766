import { generateKeySync } from 'node:crypto'
import { expect, test } from 'vitest'
import { seal, unseal } from './seal.ts'

const key = generateKeySync('aes', { length: 256 })

test('a sealed value is restored by its key', () => {
  expect(unseal(key, seal(key, { link: 'https://app.example/#1', tries: [1, null] }))).toEqual({
    link: 'https://app.example/#1',
    tries: [1, null],
  })
})

test('a value that was sealed for one context opens in no other', () => {
  const sealed = seal(key, 'secret', 'factors 1')
  expect(unseal(key, sealed, 'factors 1')).toBe('secret')
  for (const context of ['factors 2', '', undefined]) expect(() => unseal(key, sealed, context)).toThrow('authenticate')
})

test('another key, any changed byte and any truncation are refused', () => {
  const sealed = seal(key, 'secret')
  expect(() => unseal(generateKeySync('aes', { length: 256 }), sealed)).toThrow('authenticate')
  const bytes = Buffer.from(sealed, 'base64')
  for (let at = 0; at < bytes.length; at++) {
    const changed = Buffer.from(bytes)
    changed.writeUInt8(changed.readUInt8(at) ^ 1, at)
    expect(() => unseal(key, changed.toString('base64'))).toThrow('authenticate')
    const cutOff = bytes.subarray(0, at).toString('base64')
    const refusal = at === 0 ? 'initialization vector' : at < 28 ? 'Invalid authentication tag length' : 'authenticate'
    expect(() => unseal(key, cutOff), `${at} bytes`).toThrow(refusal)
  }
})
