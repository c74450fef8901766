import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'

const root = mkdtempSync(join(tmpdir(), 'release-'))
const script = join(import.meta.dirname, 'read-tag.mjs')
const readTag = (...args: string[]) =>
  promisify(execFile)(process.execPath, [script, ...args], { env: { RELEASE_ROOT: root } }).then(
    ({ stdout }) => stdout,
    ({ stderr }) => `refused: ${stderr}`,
  )

beforeAll(() => {
  mkdirSync(join(root, 'services/auth'), { recursive: true })
  writeFileSync(join(root, 'services/auth/package.json'), '{"version":"1.2.0"}')
  writeFileSync(
    join(root, 'services/auth/CHANGELOG.md'),
    '# Changelog of auth\n\n## 1.2.0 (2026-11-30)\n\n- This is new.\n\n## 1.1.0 (2026-10-01)\n\n- This is old.\n',
  )
})
afterAll(() => rmSync(root, { recursive: true }))

test('a tag releases its version with its own section of the changelog', async () => {
  expect(await readTag('auth-v1.2.0')).toBe('service=auth\nversion=1.2.0\n')
  expect(await readTag('auth-v1.2.0', '--changes')).toBe('- This is new.\n')
})

test('a tag with another version than the package, no version or no changelog section releases nothing', async () => {
  expect(await readTag('auth-v1.1.0')).toMatch(/^refused: .*is at 1\.2\.0, the tag at 1\.1\.0/)
  for (const tag of [
    'auth-v1',
    'v1.2.0',
    'other-v1.2.0',
    'xauth-v1.2.0',
    'auth-v1.2.0;id',
    'auth-v1.2.0\nservice=media',
  ]) {
    expect(await readTag(tag)).toMatch(/^refused: .*is not auth-v1\.2\.3/s)
  }
  writeFileSync(join(root, 'services/auth/package.json'), '{"version":"1.3.0"}')
  expect(await readTag('auth-v1.3.0')).toMatch(/^refused: .*nothing of it/)
  writeFileSync(join(root, 'services/auth/CHANGELOG.md'), '## 1.3.0 (unreleased)\n\n- Not yet.\n')
  expect(await readTag('auth-v1.3.0')).toMatch(/^refused: .*unreleased/)
})
