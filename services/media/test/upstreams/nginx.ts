// A real nginx in front of a test's service.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findFreePort } from '@services/common/dev/dev-ports'
import { findProgram } from '@services/common/testing/run/needs'
import { expect, onTestFinished } from 'vitest'
import type { TestService } from '../service.ts'

const NGINX = findProgram('nginx') ?? 'nginx'

/** The nginx recipe of the documentation, word for word but for the service's address and directory. */
export async function documentedLocations(service: TestService): Promise<string> {
  const page = await readFile(new URL('../../../../docs/explanation/media/serving-files.md', import.meta.url), 'utf8')
  const [, recipe = ''] = /^```nginx\n([\s\S]*?)^```$/m.exec(page) ?? []
  expect(recipe).toContain('location /blobs/')
  return recipe.replace('http://127.0.0.1:8082', service.url).replace('/var/lib/media/blobs/', `${service.blobsDir}/`)
}

/** Starts it for this test. Returns where it listens. */
export async function startNginx(locations: string): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), 'media-nginx-'))
  const port = await findFreePort()
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  await mkdir(join(home, 'temporary'))
  await writeFile(
    join(home, 'nginx.conf'),
    `daemon off; worker_processes 1; pid ${home}/pid; ${process.getuid?.() === 0 ? 'user root;' : ''}
events {}
http {
  access_log off; ${temporary.map((name) => `${name}_temp_path ${home}/temporary/${name};`).join(' ')}
  server {
    listen 127.0.0.1:${port};
${locations}
  }
}
`,
  )
  const child = spawn(NGINX, ['-p', home, '-e', `${home}/error.log`, '-c', `${home}/nginx.conf`], { stdio: 'ignore' })
  onTestFinished(async () => {
    child.kill('SIGTERM')
    await once(child, 'exit')
    await rm(home, { recursive: true, force: true })
  })
  const base = `http://127.0.0.1:${port}`
  const answers = () =>
    fetch(`${base}/health/live`).then(
      ({ status }) => status,
      () => 0,
    )
  await expect.poll(answers, { interval: 20 }).toBe(200)
  return base
}
