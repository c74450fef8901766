// Validation of Kubernetes objects. The JSON schemas of kubernetes-models check types and required members. Its type
// declarations list all members, because the API server refuses or drops others.
import { readFileSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { KubernetesObject } from './helm.ts'

const OPERATORS: Record<string, string> = {
  'monitoring.coreos.com': '@kubernetes-models/prometheus-operator',
  'keda.sh': '@kubernetes-models/keda',
}

export async function schemaProblems(object: KubernetesObject): Promise<string[]> {
  const group = object.apiVersion.split('/')[0] as string
  const name = `${OPERATORS[group] ?? 'kubernetes-models'}/${object.apiVersion}/${object.kind}`
  const model = (await import(name))[object.kind]
  const problems: string[] = []
  try {
    new model(structuredClone(object)).validate()
  } catch (error) {
    problems.push(`${object.kind} ${object.metadata.name}: ${(error as Error).message}`)
  }
  const declaration = fileURLToPath(import.meta.resolve(name)).replace(/\.js$/, '.d.ts')
  const unknown = unknownMembers(object, declarationOf(realpathSync(declaration)), object.kind)
  return [...problems, ...unknown.map((path) => `${path} is unknown to Kubernetes`)]
}

interface Declaration {
  path: string
  /** Types of members by name; undefined where the file declares something else, such as a union. */
  members: Map<string, string> | undefined
  imports: Map<string, string>
}

const declarations = new Map<string, Declaration>()

function declarationOf(path: string): Declaration {
  const known = declarations.get(path)
  if (known) return known
  const text = readFileSync(path, 'utf8').replace(/\/\*\*[\s\S]*?\*\//g, '')
  const body = /^export interface \w+[^{]*/m.exec(text)
  const imports = [...text.matchAll(/import \{ (\w+) \} from "(.+?)(?:\.js)?";/g)]
  const declaration = {
    path,
    members: body ? membersOf(text.slice(body.index + body[0].length)) : undefined,
    imports: new Map(imports.map(([, name, file]) => [name as string, file as string])),
  }
  declarations.set(path, declaration)
  return declaration
}

/** Parses the members of the leading `{ … }`. */
function membersOf(text: string): Map<string, string> {
  const members = new Map<string, string>()
  let depth = 0
  let start = 1
  for (let at = 0; at < text.length; at++) {
    const letter = text[at] as string
    if ('{<('.includes(letter)) depth++
    if ('}>)'.includes(letter)) depth--
    if (depth === 0) break
    if (depth === 1 && letter === ';') {
      const member = /^\s*(?:"([^"]+)"|(\w+)|\[key: string\])\??:\s*([\s\S]+)$/.exec(text.slice(start, at))
      if (member) members.set(member[1] ?? member[2] ?? '*', member[3] as string)
      start = at + 1
    }
  }
  return members
}

function unknownMembers(value: unknown, { path, members, imports }: Declaration, at: string): string[] {
  if (!members || typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, member]) => {
    const type = members.get(name) ?? members.get('*')
    if (!type) return [`${at}.${name}`]
    return unknownInType(member, type, { path, imports }, `${at}.${name}`)
  })
}

type Scope = Pick<Declaration, 'path' | 'imports'>

function unknownInType(value: unknown, type: string, scope: Scope, at: string): string[] {
  if (type.startsWith('Array<') && Array.isArray(value)) {
    const item = type.slice('Array<'.length, -1)
    return value.flatMap((entry, index) => unknownInType(entry, item, scope, `${at}[${index}]`))
  }
  if (type.startsWith('{')) return unknownMembers(value, { ...scope, members: membersOf(type) }, at)
  const file = scope.imports.get(type)
  return file ? unknownMembers(value, declarationOf(resolveDeclaration(file, scope.path)), at) : []
}

function resolveDeclaration(file: string, from: string): string {
  if (file.startsWith('.')) return join(dirname(from), `${file}.d.ts`)
  const modules = from.slice(0, from.lastIndexOf('/node_modules/') + '/node_modules/'.length)
  return realpathSync(join(modules, `${file}.d.ts`))
}
