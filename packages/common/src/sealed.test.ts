import { generateKeySync } from 'node:crypto'
import { expect, test } from 'vitest'
import { seal, unseal } from './sealed.ts'

const key = generateKeySync('aes', { length: 256 })

test('a sealed value opens with its key as it was', () => {
  expect(unseal(key, seal(key, { link: 'https://app.example/#1', tries: [1, null] }))).toEqual({
    link: 'https://app.example/#1',
    tries: [1, null],
  })
})

test('one of another key, one that was changed in any byte, and one that was cut off anywhere are refused', () => {
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
