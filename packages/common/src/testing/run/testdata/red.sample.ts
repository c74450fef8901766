import { describe, expect, test } from 'vitest'

describe('a group', () => {
  test("does (not) work: it's 1 + 1", () => expect(1 + 1).toBe(3))
  test('does work', () => {})
})
