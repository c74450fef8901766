import Fastify from 'fastify'
import { expect, test } from 'vitest'
import { documentApi } from '../../http/api-docs.ts'
import { withHeaders } from '../../http/route-schema.ts'
import { answerHolder, undocumentedRoutes } from './held-answers.ts'

const text = { description: 'Text.', schema: { type: 'string' } }
const NoteShape = {
  title: 'Note',
  type: 'object',
  required: ['id'],
  properties: { id: { type: 'integer' }, text: { type: ['string', 'null'] } },
}
const ErrorShape = { title: 'Error', type: 'object', required: ['code'], properties: { code: { type: 'string' } } }

async function openNotes() {
  const app = Fastify()
  await documentApi(app, {
    ...{ title: 'Notes', version: '1', description: 'Notes.', baseUrl: 'https://notes.example/' },
    contact: { name: 'Ada', url: 'https://notes.example/' },
    ...{ securitySchemes: {}, tags: ['notes'], examples: {}, icon: '', requestHeaders: {}, readEverywhere: [] },
    answerHeaders: { ETag: text, Location: { ...text, required: true } },
    nullIsAbsent: false,
    errors: { everywhere: [], headers: () => [], otherForms: {} },
  })
  const response = {
    200: withHeaders(NoteShape, 'Location'),
    204: { type: 'null' },
    404: ErrorShape,
  }
  app.get('/notes/:id', { schema: { operationId: 'getNote', tags: ['notes'], response } }, async () => ({ id: 1 }))
  app.post('/notes', { schema: { operationId: 'addNote', tags: ['notes'], response } }, async () => ({ id: 1 }))
  return app
}
const hold = async () => answerHolder(await openNotes())

const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8' }
const answer = (status: number, body: unknown, headers: Record<string, string> = JSON_TYPE) => ({
  status,
  header: (name: string) => headers[name],
  text: body === undefined ? '' : JSON.stringify(body),
})

test('a documented answer passes, and so does one at an undocumented path', async () => {
  const holdAnswer = await hold()
  holdAnswer('GET', '/notes/1?x=1', answer(200, { id: 1, text: null }, { ...JSON_TYPE, location: '/' }))
  holdAnswer('GET', '/notes/1', answer(204, undefined, {}))
  holdAnswer('GET', '/notes/1', answer(404, { code: 'not_found' }))
  holdAnswer('HEAD', '/notes/1', answer(204, undefined, {}))
  holdAnswer('GET', '/other', answer(418, 'tea'))
})

test.each([
  ['status', answer(201, { id: 1 }), 'the status is not documented'],
  ['media type', answer(404, 'x', { 'content-type': 'text/html' }), 'the media type "text/html" is not documented'],
  ['header that is missing', answer(200, { id: 1 }), 'the header Location is missing'],
  ['header more', answer(204, undefined, { etag: '"1"' }), 'the header ETag is not documented'],
  ['body where none is', answer(204, { id: 1 }), 'no body is documented'],
  ['body of another shape', answer(404, { code: 1 }), 'the body differs (/code must be string)'],
])('an undocumented %s fails the test', async (_what, given, problem) => {
  const holdAnswer = await hold()
  expect(() => holdAnswer('GET', '/notes/1', given)).toThrow(`GET /notes/{id} answered ${given.status}, and ${problem}`)
})

test("an answer to HEAD is held to GET's", async () => {
  const holdAnswer = await hold()
  expect(() => holdAnswer('HEAD', '/notes/1', answer(201, undefined))).toThrow('the status is not documented')
})

test('undocumented routes are found, except HEAD beside GET', async () => {
  const app = await openNotes()
  const notes = { schema: { hide: true } }
  app.put('/notes/:id', notes, async () => '')
  app.get('/notes/:id/history', notes, async () => '')
  app.head('/notes/:id/lock', notes, async () => '')
  const found = (await undocumentedRoutes(app)).filter(
    (route) => !route.includes(' /docs') && !route.endsWith('/openapi.json'),
  )
  expect(found.sort()).toEqual(['GET /notes/:id/history', 'HEAD /notes/:id/lock', 'PUT /notes/:id'])
})
