import { nearest } from '@services/common/config/nearest-name'
import { SAMPLE_VARIABLES } from './check-template.ts'
import { ALL_KINDS, type MailKind } from './kinds.ts'
import { rootFields } from './template/root-fields.ts'
import type { Template } from './template/template.ts'

/** Describes the variables of a subject that its kind of mail does not have: they are always empty. */
export const unknownInSubject = (template: Template, kind: MailKind): string[] =>
  unknownAmong(template, Object.keys(SAMPLE_VARIABLES[kind]))

/** Describes the variables that no kind of mail has: several kinds may share a body and ask for those of each. */
export const unknownInBody = (template: Template): string[] =>
  unknownAmong(template, [...new Set(ALL_KINDS.flatMap((kind) => Object.keys(SAMPLE_VARIABLES[kind])))])

const unknownAmong = ({ nodes }: Template, known: readonly string[]): string[] =>
  rootFields(nodes)
    .filter((name) => !known.includes(name))
    .map((name) => {
      const closest = nearest(name, known)
      return `has the unknown variable {{ .${name} }}${closest ? `; the nearest known one is {{ .${closest} }}` : ''}`
    })
