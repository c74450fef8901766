import { expect, test } from 'vitest'
import { outdatedPages } from '../../../docs/reference/generated.ts'
import { generatedParts } from '../../../docs/reference/media.ts'

test('the reference is as the code is: node docs/reference/update.ts writes it', async () => {
  expect(await outdatedPages(await generatedParts())).toEqual([])
})
