import { expect, test } from 'vitest'
import { typedPath } from './typed-path.ts'

test.each(['cli', 'cli:dev', 'demo'])('a path of the script %s belongs to the folder where it was typed', (script) => {
  const typed = (path: string) => typedPath(path, { npm_lifecycle_event: script, INIT_CWD: '/home/ada' })
  expect(typed('users.jsonl')).toBe('/home/ada/users.jsonl')
  expect(typed('../users.jsonl')).toBe('/home/users.jsonl')
  expect(typed('/data/users.jsonl')).toBe('/data/users.jsonl')
})

test('other programs of a script have their own folder', () => {
  expect(typedPath('a', { npm_lifecycle_event: 'start', INIT_CWD: '/home/ada' })).toBe(`${process.cwd()}/a`)
  expect(typedPath('a', {})).toBe(`${process.cwd()}/a`)
})
