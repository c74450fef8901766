import { mkdtemp, readFile, rm } from 'node:fs/promises'
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
  expect(await readFile(list, 'utf8')).toBe(`${there}\n`)
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
  const listed = (await readFile(list, 'utf8')).trim().split('\n')
  expect(listed.length).toBeLessThanOrEqual(20)
  expect([listed[0], listed.at(-1)]).toEqual([running, join(folder, 'ended-99')])
  expect(await describeElsewhere('media', join(folder, 'here'), list)).toContain(`DEV_DATA_DIR='${running}'`)
  await releaseDataDir(join(running, 'media'))
})
