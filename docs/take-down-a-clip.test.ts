import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { makeClip } from './testing/clip.ts'
import { openGuide } from './testing/guide.ts'
import { openShell, type Shell } from './testing/shell.ts'
import { upload } from './testing/upload.ts'

const { settings, mediaUrl } = inject('devServices')
const guide = openGuide('take-down-a-clip.md')
const here = { 'https://media.example.com': mediaUrl }
let shell: Shell

beforeAll(async () => {
  shell = await openShell(settings)
})
afterAll(() => shell.close())

test('a clip that a visitor reports is hidden by a moderator, and shown again', async () => {
  const { page } = await upload(await makeClip('reported'))
  const path = new URL(page).pathname
  const status = async () => (await fetch(mediaUrl + path)).status
  const report = await fetch(`${mediaUrl}${path}/report`, {
    method: 'POST',
    body: new URLSearchParams({ reason: 'copyright', text: 'Mine' }),
  })
  expect(report.status).toBe(202)

  expect(await shell.run(guide.take('tokens create'))).toMatchObject({ code: 0 })
  const { stdout } = await shell.run(guide.take('state=open', here))
  const found = JSON.parse(stdout).success.items.find(({ clip }: { clip: { page: string } }) => clip.page === page)
  expect(found).toMatchObject({ reason: 'copyright', text: 'Mine' })
  const decided = await shell.run(`REPORT=${found.id}\n${guide.take('/reports/$REPORT', here)}`)
  expect(JSON.parse(decided.stdout).success.decision).toMatchObject({ action: 'hide' })
  expect(await status()).toBe(451)

  const ID = path.split('/').at(-1)
  await shell.run(`ID=${ID}\n${guide.take('/moderation/mp4', here)}`)
  expect((await readFile(join(shell.folder, 'reported.mp4'))).toString('latin1', 4, 8)).toBe('ftyp')
  const again = await shell.run(`ID=${ID}\n${guide.take('Order 12', here)}`)
  expect(JSON.parse(again.stdout).success.items[0]).toMatchObject({ reason: 'illegal', note: 'Order 12 of 3 May' })
  await shell.run(`ID=${ID}\n${guide.take('unhide', here)}`)
  expect(await status()).toBe(200)

  const hook = await shell.run(guide.take('/webhooks', here))
  expect(JSON.parse(hook.stdout).success.events).toEqual(['media.reported'])
})

test('the settings of the guide are accepted', async () => {
  await shell.write('moderation.env', guide.file('hide.env') + guide.file('scan.env'))
  const checked = await shell.run('set -a; . ./moderation.env; media config check')
  expect(checked).toMatchObject({ code: 0 })
  expect(checked.stdout + checked.stderr).not.toContain('has no effect')
})

test('every command of the guide was run', () => {
  expect(guide.untaken()).toEqual([])
})
