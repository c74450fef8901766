import { expect, test } from 'vitest'
import { generatedParts } from '../../../docs/reference/auth.ts'
import { outdatedPages } from '../../../docs/reference/generated.ts'

test('the reference matches the code (node docs/reference/update.ts writes it)', async () => {
  expect(await outdatedPages(await generatedParts())).toEqual([])
})
