import { test } from 'vitest'

test('needs a program', { tags: 'absent' }, () => {})
test('skips itself', ({ skip }) => skip('the moon is not full'))
