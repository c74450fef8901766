import { test } from 'vitest'

test('needs to be root', { tags: 'root' }, () => {})
