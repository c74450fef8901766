import pg from 'pg'
import { expect, inject, onTestFinished, test } from 'vitest'

test('pg has the private members that cancel a statement', async () => {
  const client = new pg.Client({ connectionString: inject('databaseServerUrl') })
  await client.connect()
  onTestFinished(() => client.end())
  expect(client).toMatchObject({
    host: expect.any(String),
    port: expect.any(Number),
    ssl: false,
    sslNegotiation: 'postgres',
    processID: expect.any(Number),
    secretKey: expect.any(Number),
  })
  const methods = { connect: expect.any(Function), requestSsl: expect.any(Function), cancel: expect.any(Function) }
  expect(pg.Connection.prototype).toMatchObject(methods)
})
