import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { describeElsewhere, rememberDataRoot } from './elsewhere.ts'
import { claimDataDir, releaseDataDir } from './running.ts'

test('a dev on another data folder is named while it runs the service', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'elsewhere-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const [here, there, list] = [join(folder, 'here'), join(folder, "it's there"), join(folder, 'cache/list')]
  expect(await describeElsewhere('auth', here, list)).toBe('')
  for (let i = 0; i < 2; i++) await rememberDataRoot(there, list)
  expect(await readdir(list)).toHaveLength(1)
  expect(await describeElsewhere('auth', here, list)).toBe('')
  await claimDataDir(join(there, 'auth'), 'auth', 'AUTH_PORT')
  const named = ` Dev runs with DEV_DATA_DIR='${folder}/it'\\''s there': set that here, too.`
  expect(await describeElsewhere('auth', here, list)).toBe(named)
  expect(await describeElsewhere('media', here, list)).toBe('')
  expect(await describeElsewhere('auth', there, list)).toBe('')
  await releaseDataDir(join(there, 'auth'))
  expect(await describeElsewhere('auth', here, list)).toBe('')
})

test('the list of data folders stays short, and keeps those on which a dev runs', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'elsewhere-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const [list, running] = [join(folder, 'list'), join(folder, 'running')]
  await rememberDataRoot(running, list)
  await claimDataDir(join(running, 'media'), 'media', 'MEDIA_PORT')
  for (let n = 0; n < 100; n++) await rememberDataRoot(join(folder, `ended-${n}`), list)
  expect((await readdir(list)).length).toBeLessThanOrEqual(20)
  expect(await describeElsewhere('media', join(folder, 'here'), list)).toContain(`DEV_DATA_DIR='${running}'`)
  await releaseDataDir(join(running, 'media'))
})

test('devs that start at once on a full list lose no folder of each other', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'elsewhere-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const list = join(folder, 'list')
  for (let n = 0; n < 20; n++) await rememberDataRoot(join(folder, `ended-${n}`), list)
  // One of them was known before.
  const roots = ['ended-0', 'one', 'two'].map((name) => join(folder, name))
  await Promise.all(
    roots.map(async (root) => {
      await claimDataDir(join(root, 'auth'), 'auth', 'AUTH_PORT')
      await rememberDataRoot(root, list)
    }),
  )
  const named = await describeElsewhere('auth', join(folder, 'here'), list)
  for (const root of roots) expect(named).toContain(`DEV_DATA_DIR='${root}'`)
})
