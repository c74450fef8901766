import { expect, test } from 'vitest'

test.each(Array.from({ length: 100 }, (_, n) => n))('adds zero to %i', (n) => expect(n + 0).toBe(n))
