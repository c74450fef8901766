import { copyFile, readFile, symlink } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest'
import { createFarServer } from '../packages/common/src/testing/http/far-server.ts'
import { makeClip } from './testing/clip.ts'
import { openGuide } from './testing/guide.ts'
import { openShell, type Shell } from './testing/shell.ts'

const { mediaUrl, dataDir } = inject('devServices')
const guide = openGuide('../services/media/README.md')
let shell: Shell

beforeAll(async () => {
  shell = await openShell()
  await symlink(dataDir, join(shell.folder, '.data'))
})
afterAll(() => shell.close())

test('the three requests of the README of media upload a clip, import one and list both', async () => {
  guide.leave('pnpm@12 dev', 'docs/testing/global-setup.ts')

  const service = { 'http://127.0.0.1:8082': mediaUrl }
  const clip = await makeClip('media-readme')
  await copyFile(clip, join(shell.folder, 'clip.mp4'))
  const upload = guide.take('/media/upload', service)
  const [token = ''] = upload.split('\n')
  const uploaded = JSON.parse((await shell.run(upload)).stdout).success
  for (const url of [uploaded.page, ...Object.values<string>(uploaded.files)]) {
    expect((await fetch(url)).status).toBe(200)
  }

  const source = await serve(clip)
  const remote = { 'https://upload.wikimedia.org/wikipedia/commons/2/2c/Rotating_earth_%28large%29.gif': source }
  const imported = await shell.run(`${token}\n${guide.take('/media/import', { ...service, ...remote })}`)
  const { page } = JSON.parse(imported.stdout).success

  const list = await shell.run(`${token}\n${guide.take('/media', service)}`)
  const pages = JSON.parse(list.stdout).success.items.map((item: { page: string }) => item.page)
  expect(pages).toEqual(expect.arrayContaining([uploaded.page, page]))
  expect(guide.untaken()).toEqual([])
})

/** Serves this file until the test ends; `dev` allows imports from this machine. */
async function serve(path: string): Promise<string> {
  const bytes = await readFile(path)
  const server = createFarServer((_request, response) => response.end(bytes))
  onTestFinished(() => void server.close())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/clip.mp4`
}
