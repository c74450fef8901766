import { expect, test } from 'vitest'
import { createSourceGuard } from './source-guard.ts'

test('the refusal says nothing about the reason or the address', () => {
  expect(() => createSourceGuard().parseUrl('http://169.254.169.254/')).toThrow(
    expect.objectContaining({
      code: 'source_forbidden',
      status: 403,
      message: 'The source address is not allowed.',
      details: undefined,
    }),
  )
})
