// The operations of an OpenAPI document as Markdown: a heading each, authorization, fields with their limits, answers.
import { cell, code, type Generated, tableOf } from './generated.ts'

interface Schema {
  $ref?: string
  type?: string | string[]
  description?: string
  enum?: unknown[]
  const?: unknown
  format?: string
  default?: unknown
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
  pattern?: string
  anyOf?: Schema[]
  oneOf?: Schema[]
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
}
interface Parameter {
  $ref?: string
  name: string
  in: string
  required?: boolean
  description?: string
  schema: Schema
}
type Content = Record<string, { schema?: Schema; example?: object }>
interface Operation {
  tags?: string[]
  summary?: string
  description?: string
  security?: Record<string, unknown>[]
  parameters?: Parameter[]
  requestBody?: { required?: boolean; content: Content }
  responses: Record<string, { description?: string; content?: Content }>
}
export interface ApiDocument {
  tags?: { name: string }[]
  paths: Record<string, Record<string, Operation>>
  components: { schemas?: Record<string, Schema>; parameters?: Record<string, Parameter> }
}

interface Wording {
  page: string
  /** Authorization by the name of a security scheme; without one: `''`. Schemes with the same text are named once. */
  authorization: Readonly<Record<string, string>>
  /** Statuses and header parameters that the page explains once, for all operations. */
  explainedOnce: readonly string[]
}

/** One part per group of operations, `operations GROUP`, and one with the shapes that they share, `shapes`. */
export function operationParts(document: ApiDocument, wording: Wording): Generated[] {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([method]) => method !== 'head')
      .map(([method, operation]) => ({ name: `${method.toUpperCase()} ${path}`, operation })),
  )
  const groups = (document.tags ?? []).map(({ name }) => ({
    page: wording.page,
    mark: `operations ${name}`,
    markdown: operations
      .filter(({ operation }) => operation.tags?.[0] === name)
      .map(({ name, operation }) => describe(name, operation, document, wording))
      .join('\n\n'),
  }))
  const shapes = Object.entries(document.components.schemas ?? {}).map(([name, schema]) => shapeOf(name, schema))
  return [...groups, { page: wording.page, mark: 'shapes', markdown: shapes.join('\n\n') }]
}

function describe(name: string, operation: Operation, document: ApiDocument, wording: Wording): string {
  const isListed = (status: string) => !wording.explainedOnce.includes(status)
  const schemes = (operation.security ?? []).flatMap((scheme) => Object.keys(scheme))
  const named = (schemes.length > 0 ? schemes : ['']).map((scheme) => wording.authorization[scheme] ?? scheme)
  const authorization = [...new Set(named)]
  const fields = [...parametersOf(operation, document, isListed), ...bodyFields(operation)]
  const example = exampleOf(operation)
  const [succeeds, fails] = answersOf(operation, isListed)
  return [
    `### ${name}`,
    `${sentence(operation.summary ?? '')} ${operation.description ?? ''}`.trim(),
    `Authorization: ${authorization.join(' or ')}; answers: ${succeeds}${fails && `; errors: ${fails}`}.`,
    ...(fields.length > 0 ? [tableOf(['Field', 'In', 'Type', 'Meaning'], fields)] : []),
    ...(example ? [['```json', JSON.stringify(example), '```'].join('\n')] : []),
  ].join('\n\n')
}

const sentence = (text: string) => (text === '' || /[.!?]$/.test(text) ? text : `${text}.`)

function parametersOf(operation: Operation, document: ApiDocument, isListed: (name: string) => boolean): string[][] {
  return (operation.parameters ?? [])
    .map((parameter) => {
      const shared = parameter.$ref?.split('/').at(-1)
      return (shared && document.components.parameters?.[shared]) || parameter
    })
    .filter(({ name }) => isListed(name))
    .map(({ name, in: where, required, description, schema }) => [
      fieldName(name, required),
      where,
      cell(typeOf(schema)),
      cell(description ?? schema.description ?? ''),
    ])
}

/** Places of fields by media type of their body. */
const PLACES: Record<string, string> = {
  'application/json': 'body',
  'application/x-www-form-urlencoded': 'form',
  'multipart/form-data': 'form',
}

function bodyFields({ requestBody }: Operation): string[][] {
  const [media = '', content] = Object.entries(requestBody?.content ?? {})[0] ?? []
  const where = PLACES[media] ?? media
  if (content?.schema?.$ref) return [['', where, typeOf(content.schema), '']]
  return fieldsOf(content?.schema ?? {}).map(([name = '', type = '', meaning = '']) => [
    name,
    where,
    type.replace(' or null', ''),
    meaning,
  ])
}

/** Name, type and meaning of each member; members of members as `outer.inner`. */
function fieldsOf(schema: Schema, outer = ''): string[][] {
  const parts = [schema, ...(schema.anyOf ?? []), ...(schema.oneOf ?? [])]
  const seen = new Set<string>()
  return parts.flatMap(({ properties = {}, required = [] }) =>
    Object.entries(properties).flatMap(([name, member]) => {
      if (seen.has(name)) return []
      seen.add(name)
      const inner = member.items?.properties
        ? fieldsOf(member.items, `${outer}${name}[].`)
        : fieldsOf(member, `${outer}${name}.`)
      const field = fieldName(outer + name, required.includes(name) && outer === '')
      return [[field, cell(typeOf(member)), cell(member.description ?? '')], ...inner]
    }),
  )
}

const fieldName = (name: string, isRequired: boolean | undefined) => `${code(name)}${isRequired ? ' (required)' : ''}`

function typeOf(schema: Schema): string {
  if (schema.$ref) return linkTo(schema.$ref)
  const choices = schema.anyOf ?? schema.oneOf
  if (choices) {
    const given = choices.filter(({ type }) => type !== 'null')
    return [...new Set(given.map(typeOf))].join(' or ')
  }
  if (schema.const !== undefined) return code(String(schema.const))
  const values = schema.enum?.filter((value) => value !== null).map((value) => code(String(value)))
  const types = [schema.type ?? []].flat().filter((type) => type !== 'null')
  const name = schema.items ? `list of ${typeOf(schema.items)}` : (schema.format ?? types.join(' or '))
  return [values?.join(', ') || name || 'any', ...limitsOf(schema)].join('; ')
}

function limitsOf(schema: Schema): string[] {
  const range = (least: number | undefined, most: number | undefined, unit: string) => {
    if (least === undefined && most === undefined) return []
    if (least === undefined) return [`at most ${most}${unit}`]
    return [most === undefined ? `at least ${least}${unit}` : `${least} to ${most}${unit}`]
  }
  return [
    ...range(schema.minimum, schema.maximum, ''),
    ...range(schema.minLength, schema.maxLength, ' characters'),
    ...range(schema.minItems, schema.maxItems, ' entries'),
    ...(schema.pattern && schema.pattern.length <= 60 ? [`pattern ${code(schema.pattern)}`] : []),
    ...(schema.default === undefined ? [] : [`default ${code(String(schema.default))}`]),
  ]
}

const linkTo = (ref: string) => {
  const name = ref.split('/').at(-1) ?? ''
  return `[${name}](#${name.toLowerCase()})`
}

function exampleOf({ requestBody }: Operation): object | undefined {
  const example = requestBody?.content['application/json']?.example
  return example && Object.keys(example).length > 0 ? example : undefined
}

function answersOf({ responses }: Operation, isListed: (status: string) => boolean): [string, string] {
  const statuses = Object.entries(responses).filter(([status]) => isListed(status))
  const succeeds = statuses.filter(([status]) => Number(status) < 400)
  const fails = statuses.filter(([status]) => Number(status) >= 400 || status === 'default')
  return [
    succeeds.map(([status, { content }]) => `${status}${bodyOf(content)}`).join(', '),
    fails.map(([status]) => (status === 'default' ? 'any of a hook' : status)).join(', '),
  ]
}

function bodyOf(content: Content | undefined): string {
  const [media, { schema = {} } = {}] = Object.entries(content ?? {})[0] ?? []
  if (media === undefined) return ''
  if (media !== 'application/json') return ` (${code(media)})`
  const choices = schema.anyOf ?? schema.oneOf ?? [schema]
  const names = choices.map((choice) => (choice.$ref ? linkTo(choice.$ref) : membersOf(choice)))
  return names.join('') === '' ? '' : ` ${[...new Set(names)].filter(Boolean).join(' or ')}`
}

const membersOf = (schema: Schema): string => {
  if (schema.items) return `a list of ${typeOf(schema.items)}`
  const names = Object.keys(schema.properties ?? {})
  return names.length === 0 ? '' : `with ${names.map(code).join(', ')}`
}

function shapeOf(name: string, schema: Schema): string {
  const rows = fieldsOf(schema)
  const text = schema.description ? [sentence(schema.description)] : []
  const shape = rows.length > 0 ? tableOf(['Field', 'Type', 'Meaning'], rows) : sentence(typeOf(schema))
  return [`### ${name}`, ...text, shape].join('\n\n')
}
