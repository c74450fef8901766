import { expect, test } from 'vitest'

let begun = 0
test.each([0, 1, 2, 3, 4, 5])('runs in its place, which is %i', (place) => expect(begun++).toBe(place))
