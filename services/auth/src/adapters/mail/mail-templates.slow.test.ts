import { expect, test } from 'vitest'
import { startTestService } from '../../../test/service.ts'
import { startUpstream } from '../../../test/upstream.ts'
import { startWorker } from '../../worker.ts'

test('a template from a URL that hangs holds a mail up for two seconds, and no start', async () => {
  const upstream = await startUpstream((response) => void response.writeHead(200).write('<p>'))
  const template = { AUTH_MAILER_TEMPLATES_CONFIRMATION: `${upstream.url}/a.html` }
  const service = await startTestService({ ...template, AUTH_WORKERS_ENABLED: 'false' })
  const stopWorker = await startWorker(service.deps)
  await service.post('/signup', { email: 'waits@example.com', password: 'correct horse' })
  const { html } = await service.mailbox.waitFor('waits@example.com')
  expect(html).toContain('Confirm your email address')
  await stopWorker()
  await service.close()
  await upstream.close()
})
