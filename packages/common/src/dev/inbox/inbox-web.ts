// The mail inbox of development: an SMTP server that keeps messages, and the pages that show them.
import { readFile } from 'node:fs/promises'
import Fastify, { type FastifyInstance, type FastifyReply } from 'fastify'
import { PAGE_POLICY } from '../../pages/document.ts'
import type { Message, Messages } from './inbox-messages.ts'
import { type MessageView, renderInboxPage, viewsOf } from './inbox-page.ts'

/** A page of the inbox may frame a mail, which has a policy of its own. */
const INBOX_POLICY = `${PAGE_POLICY}; frame-src 'self'`

/** Policy of a mail that is opened outside its frame. */
const MAIL_POLICY =
  "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; style-src 'unsafe-inline' https: http:; img-src https: http: data:; font-src https: http: data:"

export async function createInboxWeb(messages: Messages, smtpAddress: string): Promise<FastifyInstance> {
  const app = Fastify({ logger: false, forceCloseConnections: true })
  const [css, js] = await Promise.all([
    readFile(new URL('./inbox-page.css', import.meta.url), 'utf8'),
    readFile(new URL('./inbox-page.js', import.meta.url), 'utf8'),
  ])

  app.addHook('onRequest', async (request, reply) => {
    // DNS rebinding: a page whose host name resolves to 127.0.0.1 must not read sign-in links.
    if (!isLocalName(request.hostname)) return reply.code(403).send({ error: `Not served under ${request.hostname}` })
    reply.headers({
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-store',
    })
  })

  app.get('/inbox.css', (_request, reply) => reply.type('text/css; charset=utf-8').send(css))
  app.get('/inbox.js', (_request, reply) => reply.type('text/javascript; charset=utf-8').send(js))

  const sendInbox = (reply: FastifyReply, shown?: { message: Message; view: MessageView }) =>
    sendPage(reply, INBOX_POLICY, renderInboxPage({ messages: messages.list(), smtpAddress, shown, now: new Date() }))

  app.get('/', (_request, reply) => sendInbox(reply))

  app.get<{ Params: { id: string }; Querystring: { view?: string } }>('/messages/:id', (request, reply) => {
    const message = messages.find(Number(request.params.id))
    if (!message) return reply.redirect('/')
    return sendInbox(reply, { message, view: chooseView(message, request.query.view) })
  })

  app.get<{ Params: { id: string } }>('/messages/:id/html', (request, reply) => {
    const message = messages.find(Number(request.params.id))
    if (!message) return reply.code(404).send({ error: 'No such message' })
    return sendPage(reply, MAIL_POLICY, `<base target="_blank">${message.html}`)
  })

  app.get<{ Querystring: { to?: string } }>('/api/messages', (request) => ({
    messages: messages.list({ to: request.query.to }).map(({ source: _, ...message }) => message),
  }))

  app.get<{ Params: { id: string } }>('/api/messages/:id', (request, reply) => {
    const message = messages.find(Number(request.params.id))
    return message ?? reply.code(404).send({ error: 'No such message' })
  })

  app.delete('/api/messages', (_request, reply) => {
    messages.clear()
    return reply.code(204).send()
  })

  return app
}

const sendPage = (reply: FastifyReply, policy: string, page: string) =>
  reply.type('text/html; charset=utf-8').header('content-security-policy', policy).send(page)

const isLocalName = (name: string) => ['127.0.0.1', 'localhost', '[::1]', '::1'].includes(name)

function chooseView(message: Message, wanted: string | undefined): MessageView {
  const views = viewsOf(message)
  return views.find((view) => view === wanted) ?? views[0] ?? 'source'
}
