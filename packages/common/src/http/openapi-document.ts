// Builds the OpenAPI document from the routes' schemas. Repeated parts stand once under `components`: a schema with a
// `title`, an error response, a header. Additions to a route's schema: route-schema.ts. Tests:
// testing/http/held-answers.ts.
import { STATUS_CODES } from 'node:http'
import type { FastifySchema } from 'fastify'
import { DOCUMENTED, withHeaders } from './route-schema.ts'

export interface Header {
  description: string
  schema: object
  required?: boolean
}

export interface SharedParts {
  requestHeaders: Readonly<Record<string, Header>>
  answerHeaders: Readonly<Record<string, Header>>
  readEverywhere: readonly string[]
  nullIsAbsent: boolean
  errors: {
    everywhere: readonly number[]
    headers(status: number): readonly string[]
    /** Schemas of an error other than `application/json`, by media type. */
    otherForms: Readonly<Record<string, object>>
  }
}

type Schema = Record<string, unknown>
interface Media {
  schema: Schema & { properties?: Record<string, Schema> }
  example?: unknown
}
interface Response {
  description: string
  headers?: Record<string, unknown>
  content?: Record<string, Media>
}
interface Operation {
  operationId?: string
  parameters?: object[]
  security?: object[]
  requestBody?: { required: boolean; content: Record<string, Media> }
  responses: Record<string, Response | { $ref: string }>
  [X_HEADERS]?: readonly string[]
}
export interface Document {
  paths: Record<string, Record<string, Operation>>
  components: Record<string, Record<string, unknown>>
}

const ERROR = 'Error'
/** Extensions that the plugin carries until the document is finished. */
const X_HEADERS = 'x-request-headers'
const X_OPTIONAL = 'x-optional'

const isObject = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const mapValues = <From, To>(object: Record<string, From>, map: (value: From, key: string) => To) =>
  Object.fromEntries(Object.entries(object).map(([key, value]) => [key, map(value, key)]))

export function documentRoute<Route extends FastifySchema | undefined>(schema: Route): Route {
  if (!schema || schema.hide) return schema
  const { body, formBody, requestHeaders, ...rest } = schema
  const parts = ['querystring', 'params', 'headers', 'response'] as const
  const documented = Object.fromEntries(parts.flatMap((part) => (rest[part] ? [[part, toDocument(rest[part])]] : [])))
  return {
    ...rest,
    ...documented,
    ...(body !== undefined && { body: inEveryEncoding(documentBody(body as Schema), formBody) }),
    ...(requestHeaders && { [X_HEADERS]: requestHeaders }),
  } as Route
}

const FORMS = ['application/x-www-form-urlencoded', 'multipart/form-data']

function inEveryEncoding(body: Schema, formBody: unknown): Schema {
  if (!formBody) return body
  const form = { schema: toDocument(formBody) }
  return { content: { 'application/json': { schema: body }, ...Object.fromEntries(FORMS.map((type) => [type, form])) } }
}

function documentBody(body: Schema): Schema {
  const { anyOf = [] } = body as { anyOf?: Schema[] }
  const given = anyOf.filter(({ type }) => type !== 'null')
  const isOptional = given.length < anyOf.length || requiredInDocument(body) === false
  const [only = body] = given
  return { ...(toDocument(only) as Schema), ...(isOptional && { [X_OPTIONAL]: true }) }
}

const requiredInDocument = (schema: unknown) =>
  isObject(schema) ? (schema[DOCUMENTED] as { required?: boolean } | undefined)?.required : undefined

function toDocument(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(toDocument)
  if (!isObject(node)) return node
  const { required: _ofParent, ...members } = (node[DOCUMENTED] ?? {}) as Schema
  const { [DOCUMENTED]: _replaced, ...all } = { ...node, ...members }
  const own = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
  const { properties, required = [] } = own as { properties?: Schema; required?: string[] }
  const schema = mapValues(own, toDocument)
  if (Array.isArray(required)) delete schema.required
  if (isObject(properties)) {
    const names = Object.keys(properties).filter((name) => {
      return requiredInDocument(properties[name]) ?? required.includes(name)
    })
    if (names.length > 0) schema.required = names
  }
  return shorten(schema)
}

/** Shortens a choice of strings to an enum, and a value or null to two types. */
function shorten(schema: Schema): Schema {
  const { anyOf, ...rest } = schema as { anyOf?: Schema[] }
  if (Array.isArray(schema.enum)) return { type: typeof schema.enum[0], ...schema }
  if (!anyOf) return schema
  if (anyOf.every((each) => typeof each.const === 'string')) {
    return { ...rest, type: 'string', enum: anyOf.map((each) => each.const) }
  }
  const [value, other] = anyOf
  const isNullable = anyOf.length === 2 && other?.type === 'null' && value && !value.title && !value.enum
  return isNullable && typeof value.type === 'string' ? { ...rest, ...value, type: [value.type, 'null'] } : schema
}

/** Completes the plugin's document. Throws for a name with two meanings or none. */
export function finishDocument(document: Document, shared: SharedParts): void {
  const { components } = document
  const schemas: Schema = {}
  const responses: Record<string, unknown> = {}
  const name = <Node>(node: Node) => nameSchemas(node, schemas) as Node

  for (const [path, operations] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(operations)) {
      const statuses = [...shared.errors.everywhere, ...(path.includes('{') ? [405] : [])]
      for (const status of statuses) operation.responses[status] ??= { $ref: '' }
      const finished = name({
        ...operation,
        // Linters demand an explicit empty list for public operations.
        security: operation.security ?? [],
        ...withParameters(operation, shared),
        ...(operation.requestBody && { requestBody: finishBody(operation.requestBody, shared) }),
        responses: mapValues(operation.responses, (response, status) => finishResponse(response, Number(status))),
      })
      delete finished[X_HEADERS]
      operations[method] = method === 'head' ? withoutBodies(finished, operations.get?.operationId) : finished
    }
  }

  function finishResponse(response: Response | { $ref: string }, status: number) {
    const isError = '$ref' in response || response.content?.['application/json']?.schema.title === ERROR
    if (!isError) return describe(response, status)
    const title = `Error${status}`
    const json = { 'application/json': { schema: { $ref: `#/components/schemas/${ERROR}` } } }
    const others = mapValues(shared.errors.otherForms as Record<string, Schema>, (schema) => ({ schema }))
    const plain = { description: '', content: { ...json, ...others } }
    const usual = describe(withHeaders(plain, ...shared.errors.headers(status)), status)
    responses[title] ??= name(usual)
    if ('$ref' in response) return { $ref: `#/components/responses/${title}` }
    name(response)
    const special = Object.entries(response.content ?? {}).filter(([type]) => type !== 'application/json')
    if (special.length === 0) return { $ref: `#/components/responses/${title}` }
    return { ...usual, content: { ...usual.content, ...Object.fromEntries(special) } }
  }

  function describe(response: Response, status: number): Response {
    const { description, headers = {}, ...rest } = response
    const isDescribed = description !== 'Default Response' && description !== ''
    return {
      description: isDescribed ? description : (STATUS_CODES[status] ?? ''),
      ...(Object.keys(headers).length > 0 && {
        headers: mapValues(headers, (_, header) => refTo('headers', header, shared.answerHeaders)),
      }),
      ...rest,
    }
  }

  components.schemas = Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1)))
  components.responses = responses
  components.headers = { ...shared.answerHeaders }
  components.parameters = mapValues(shared.requestHeaders, (header, headerName) => ({
    name: headerName,
    in: 'header',
    ...header,
  }))
}

function refTo(kind: 'headers' | 'parameters', name: string, known: object) {
  if (!Object.hasOwn(known, name)) throw new Error(`no ${kind} are described for ${name}`)
  return { $ref: `#/components/${kind}/${name}` }
}

function withParameters({ parameters = [], [X_HEADERS]: names = [] }: Operation, shared: SharedParts) {
  const refs = [...shared.readEverywhere, ...names].map((name) => refTo('parameters', name, shared.requestHeaders))
  return parameters.length + refs.length > 0 ? { parameters: [...parameters, ...refs] } : {}
}

function finishBody({ content }: { content: Record<string, Media> }, { nullIsAbsent }: SharedParts) {
  let required = true
  const media = mapValues(content, ({ schema: { [X_OPTIONAL]: isOptional, ...schema }, ...rest }, type) => {
    if (isOptional) required = false
    return { ...rest, schema: nullIsAbsent && type === 'application/json' ? withNulls(schema) : schema }
  })
  return { required, content: media }
}

function withNulls(schema: Schema): Schema {
  const { properties = {}, required = [] } = schema as { properties?: Record<string, Schema>; required?: string[] }
  const orNull = (member: Schema, name: string) => {
    if (required.includes(name) || typeof member.type !== 'string') return member
    if (member.title || member.enum) return { anyOf: [member, { type: 'null' }] }
    return { ...member, type: [member.type, 'null'] }
  }
  return { ...schema, properties: mapValues(properties, orNull) }
}

/** HEAD is answered as GET is, without a body (RFC 9110 9.3.2). */
function withoutBodies({ operationId = '', ...operation }: Operation, idOfGet: string | undefined): Operation {
  // The plugin appends `-head`, and gives a route of both methods one id.
  const ownId = operationId.replace(/-head$/, '')
  return {
    ...operation,
    operationId: ownId === idOfGet ? `${ownId}Head` : ownId,
    responses: mapValues(operation.responses, (response) => {
      if ('$ref' in response) return response
      const { content: _none, ...rest } = response
      return rest
    }),
  }
}

/** Moves each schema with a title to `schemas` and leaves a reference. */
function nameSchemas(node: unknown, schemas: Schema): unknown {
  if (Array.isArray(node)) return node.map((each) => nameSchemas(each, schemas))
  if (!isObject(node)) return node
  const { title, ...schema } = mapValues(node, (value) => nameSchemas(value, schemas))
  // A property may be called title.
  if (typeof title !== 'string') return title === undefined ? schema : { ...schema, title }
  if (schemas[title] && JSON.stringify(schemas[title]) !== JSON.stringify(schema)) {
    throw new Error(`two schemas are called ${title}`)
  }
  schemas[title] = schema
  return { $ref: `#/components/schemas/${title}` }
}
