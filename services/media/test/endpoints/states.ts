// States: all that decides the visibility of a clip, and what a visitor brings.
import type { LinkTarget } from '../../src/core/clip-access/share-links.ts'
import { type SourceState, type StagedClip, type Step, sourceStates } from './stage.ts'

/** The link that a visitor has. */
export type Visitor = keyof typeof queries

export interface State {
  name: string
  steps: Step[]
  visitor: Visitor
  /** `shown`: the endpoint's own answer. 404: that of an id which no clip ever had. */
  answer: 'shown' | 404 | 410 | 451
}

type Row = [name: string, steps: Step[], visitor: Visitor, answer: State['answer']]

const toState = ([name, steps, visitor, answer]: Row): State => ({ name, steps, visitor, answer })

/** States of every clip, whether ready, processing or failed. */
export const states: State[] = (
  [
    ['public', ['public'], 'no link', 'shown'],
    ['unlisted', ['unlisted'], 'no link', 'shown'],
    ['expired', ['public', 'expired'], 'no link', 410],
    ['unlisted and expired', ['unlisted', 'expired'], 'no link', 410],
    ['deleted', ['public', 'deleted'], 'no link', 410],
    ['hidden', ['public', 'hidden'], 'no link', 451],
    ['unlisted and hidden', ['unlisted', 'hidden'], 'no link', 451],
    ['hidden and expired', ['public', 'hidden', 'expired'], 'no link', 410],
    ['private', ['private'], 'no link', 404],
    ['private and hidden', ['private', 'hidden'], 'no link', 404],
    ['private and expired', ['private', 'expired'], 'no link', 404],
    ['private and deleted', ['private', 'deleted'], 'no link', 404],
    ['private, with a link', ['private'], 'link', 'shown'],
    ['private and hidden, with a link', ['private', 'hidden'], 'link', 451],
    ['private and expired, with a link', ['private', 'expired'], 'link', 410],
    ['private and deleted, with a link', ['private', 'deleted'], 'link', 410],
    ['private, with a forged link', ['private'], 'forged link', 404],
  ] satisfies Row[]
).map(toState)

/** States in which only a link or a decision differs, of clips that are ready. */
const furtherStates: State[] = (
  [
    ['public, with a forged link', ['public'], 'forged link', 'shown'],
    ['hidden and shown again', ['public', 'hidden', 'shown again'], 'no link', 'shown'],
    ['hidden and deleted', ['public', 'hidden', 'deleted'], 'no link', 410],
    ['private and made public again', ['private', 'public'], 'no link', 'shown'],
    ['private, with the link of another address', ['private'], 'link of another address', 404],
    ['private, with a link that was made to last longer', ['private'], 'stretched link', 404],
    ['private, after its link has ended', ['private', 'an hour later'], 'link', 404],
    ['private, after all links were ended', ['private', 'links ended'], 'link', 404],
    ['private and hidden, with a forged link', ['private', 'hidden'], 'forged link', 404],
    ['private, hidden and shown again', ['private', 'hidden', 'shown again'], 'no link', 404],
  ] satisfies Row[]
).map(toState)

export type SourcedState = State & { source: SourceState }

/** All states, each with that of the bytes. */
export const allStates: SourcedState[] = [
  ...sourceStates.flatMap((source) => states.map((state) => ({ source, ...state }))),
  ...furtherStates.map((state) => ({ source: 'ready' as const, ...state })),
]

/**
 * One state for each answer of a clip that is not ready. Expiry and forged links are decided before the bytes are read.
 */
const OF_UNREADY = ['public', 'deleted', 'hidden', 'private', 'private, with a link']
const isUsual = ({ source, name }: SourcedState) => source === 'ready' || OF_UNREADY.includes(name)

/** The states of `test`; `test:slow` has the others. */
export const usualStates = allStates.filter(isUsual)
export const rareStates = allStates.filter((state) => !isUsual(state))

const queries = {
  'no link': () => '',
  link: ({ links }: StagedClip, target: LinkTarget) => links[target],
  'forged link': ({ links }: StagedClip, target: LinkTarget) =>
    links[target]?.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')),
  'link of another address': ({ links }: StagedClip, target: LinkTarget) => links[target === 'jpg' ? 'gif' : 'jpg'],
  'stretched link': ({ links }: StagedClip, target: LinkTarget) =>
    links[target]?.replace(/e=(\d+)/, (_, end) => `e=${Number(end) + 3600}`),
}

/** Query with which the visitor asks for an address. */
export function queryOf(visitor: Visitor, it: StagedClip, target: LinkTarget): string {
  const query = queries[visitor](it, target)
  if (query === undefined) throw new Error(`there is no link of ${target}`)
  return query
}
