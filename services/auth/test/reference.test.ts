import { expect, test } from 'vitest'
import { generatedParts } from '../../../docs/reference/auth.ts'
import { outdatedPages } from '../../../docs/reference/generated.ts'

test('the reference is as the code is: node docs/reference/update.ts writes it', async () => {
  expect(await outdatedPages(await generatedParts())).toEqual([])
})
