// Compares a service's answers with the OpenAPI document it serves. An undocumented answer fails the test that got it.
// The document: http/openapi-document.ts.
import ajvCompiler from '@fastify/ajv-compiler'
import type { FastifyInstance } from 'fastify'

interface Response {
  headers?: Record<string, { $ref: string }>
  content?: Record<string, { schema: object }>
}
interface Document {
  paths: Record<string, Record<string, { responses: Record<string, Response | { $ref: string }> }>>
  components: { headers: Record<string, { required?: boolean }>; responses: Record<string, Response> }
}

interface Answer {
  status: number
  /** Reads a header by its name in lower case. */
  header(name: string): string | undefined
  text: string
}

/**
 * Throws for an undocumented answer. HEAD is compared with GET unless it is documented itself. Undocumented operations
 * are skipped: `undocumentedRoutes` finds them.
 */
export type HoldAnswer = (method: string, url: string, answer: Answer) => void

/** `mayHaveBody` lists answers documented without a body that may have one, such as `POST /tus 201`. */
export async function answerHolder(
  app: FastifyInstance,
  { mayHaveBody = [] }: { mayHaveBody?: string[] } = {},
): Promise<HoldAnswer> {
  await app.ready()
  const document = app.swagger() as unknown as Document
  const { paths, components } = document
  const patterns = Object.keys(paths).map((path) => ({ path, pattern: patternOf(path) }))
  const validators = openValidators(components)

  const pathOf = (url: string) => {
    const { pathname } = new URL(url, 'http://service.test')
    const address = pathname.replace(/(?<=.)\/$/, '')
    return address in paths ? address : patterns.find(({ pattern }) => pattern.test(address))?.path
  }

  function problemOf(method: string, path: string, { status, header, text }: Answer): string | undefined {
    const { [method.toLowerCase()]: own, get } = paths[path] ?? {}
    const documented = (method === 'HEAD' ? (own ?? get) : own)?.responses
    if (!documented) return undefined
    const found = documented[status] ?? documented.default
    if (!found) return 'the status is not documented'
    const response = '$ref' in found ? (components.responses[nameIn(found)] as Response) : found
    const problem = headerProblem(response, status, header)
    if (problem || method === 'HEAD') return problem
    if (!response.content) {
      return text === '' || mayHaveBody.includes(`${method} ${path} ${status}`) ? undefined : 'no body is documented'
    }
    const [type = ''] = (header('content-type') ?? '').split(';', 1)
    const media = response.content[type]
    if (!media) return `the media type "${type}" is not documented`
    return /[/+]json$/.test(type) ? validators.problemOf(media.schema, JSON.parse(text)) : undefined
  }

  /** Finds a required header that is missing, and in a success one that the operation does not document. */
  function headerProblem({ headers = {} }: Response, status: number, header: Answer['header']): string | undefined {
    for (const name of Object.keys(headers)) {
      const isMissing = components.headers[name]?.required && header(name.toLowerCase()) === undefined
      if (isMissing) return `the header ${name} is missing`
    }
    const unknown = (name: string) => status < 400 && !(name in headers) && header(name.toLowerCase()) !== undefined
    const undocumented = Object.keys(components.headers).find(unknown)
    return undocumented && `the header ${undocumented} is not documented`
  }

  return (method, url, answer) => {
    const path = pathOf(url)
    const problem = path && problemOf(method, path, answer)
    if (!problem) return
    throw new Error(
      `${method} ${path} answered ${answer.status}, and ${problem} in /openapi.json: ${answer.text.slice(0, 500)}`,
    )
  }
}

/**
 * Lists the routes that the document lacks, such as `POST /sso`, except HEAD beside GET. Throws if Fastify's listing
 * has changed.
 */
export async function undocumentedRoutes(app: FastifyInstance): Promise<string[]> {
  await app.ready()
  const { paths } = app.swagger() as unknown as Document
  const parents: string[] = []
  // Common prefixes stay: the list without them leaves the folder of a wildcard out.
  const lines = app.printRoutes().trimEnd().split('\n')
  return lines
    .filter((line) => !line.includes('(empty root node)'))
    .flatMap((line) => {
      const [, indent, part, methods] = /^([│ ]*)[├└]── (\S+)(?: \(([A-Z, ]+)\))?$/.exec(line) ?? []
      if (indent === undefined) throw new Error(`not the form of a route: ${line}`)
      const depth = indent.length / 4
      const path = (parents[depth - 1] ?? '') + part
      parents[depth] = path
      if (!methods) return []
      const documented = paths[path.replaceAll(/:(\w+)/g, '{$1}')] ?? {}
      const own = methods.split(', ').filter((method) => method !== 'HEAD' || !methods.includes('GET'))
      return own.filter((method) => !(method.toLowerCase() in documented)).map((method) => `${method} ${path}`)
    })
}

const nameIn = ({ $ref }: { $ref: string }) => $ref.split('/').at(-1) as string

function patternOf(path: string): RegExp {
  const literal = path.replaceAll('.', String.raw`\.`)
  return new RegExp(`^${literal.replaceAll(/\{\w+\}/g, '[^/]+')}$`)
}

/** Compiles each schema at the first answer of its kind, and each shared part of the document once. */
function openValidators(components: object) {
  const options = { strict: false, coerceTypes: false, removeAdditional: false, useDefaults: false } as const
  const compile = ajvCompiler()({ document: { $id: 'document', components } }, { customOptions: options })
  const compiled = new Map<object, ReturnType<typeof compile>>()
  return {
    problemOf(schema: object, value: unknown): string | undefined {
      const validate = compiled.get(schema) ?? compile({ schema: withinDocument(schema) })
      compiled.set(schema, validate)
      if (validate(value)) return undefined
      const [first] = validate.errors ?? []
      return `the body differs (${first?.instancePath || 'it'} ${first?.message})`
    },
  }
}

/** The schema as one of its own, whose references lead to the document. */
const withinDocument = (schema: object): object =>
  JSON.parse(JSON.stringify(schema).replaceAll('"#/components/', '"document#/components/'))
