import { expect, test } from 'vitest'
import { startFarSide } from '../../../test/far-side.ts'
import { startTestService } from '../../../test/service.ts'

test('a template from a URL that hangs holds a mail up for ten seconds, and no start', async () => {
  const farSide = await startFarSide((response) => void response.writeHead(200).write('<p>'))
  const service = await startTestService({ AUTH_MAILER_TEMPLATES_CONFIRMATION: `${farSide.url}/a.html` })
  await service.post('/signup', { email: 'waits@example.com', password: 'correct horse' })
  const { html } = await service.mailbox.waitFor('waits@example.com')
  expect(html).toContain('Confirm your email address')
  await service.close()
  await farSide.close()
})
