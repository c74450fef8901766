// Signed addresses of private clips and their files, and of private albums, each good for a while.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { parseDurationSeconds, SECONDS_OR_DURATION } from '@services/common/config/duration'
import type { RenditionKind } from '../../db/tables.ts'
import { invalidField } from '../clips/clip-fields.ts'
import { isClipId } from '../clips/clip-id.ts'

/** Times for which a link is good. */
const USUAL_SECONDS = 3600
const SHORTEST_SECONDS = 60
const LONGEST_SECONDS = 30 * 86_400

/** A signed address. */
export type LinkTarget = 'page' | 'oembed' | 'embed' | RenditionKind

/**
 * Targets in order, files last: a link signs its own address and those below it. The answer of oEmbed is the player,
 * which shows the files. A link that signed more would open more than its holder was given.
 */
const ORDER: readonly LinkTarget[] = ['page', 'oembed', 'embed']

const depthOf = (target: LinkTarget) => (ORDER.includes(target) ? ORDER.indexOf(target) : ORDER.length)

const leadsTo = (from: LinkTarget, to: LinkTarget): boolean => from === to || depthOf(from) < depthOf(to)

/** Query members of a link, as a router gives them. */
export interface LinkQuery {
  /** Expiry in seconds since 1970. */
  e?: unknown
  /** Signature. */
  s?: unknown
  /** Id of the album that shows the clip, if the link is one of the album. */
  a?: unknown
}

/** A valid link to a private clip or album: signs addresses below its own until the same moment. */
export interface Link {
  expiresAt: Date
  /** Query of an address, with its question mark; undefined for one that the link does not lead to. */
  queryOf(target: LinkTarget): string | undefined
}

/** `id` and salt of a clip or an album. */
export interface LinkKey {
  id: string
  linkSalt: Buffer | null
  /** Album that shows the clip `id`; the salt is then that of the album. */
  albumId?: string | undefined
}

/** Id of the album that a link is of. */
export const albumIn = ({ a }: LinkQuery): string | undefined => (typeof a === 'string' && isClipId(a) ? a : undefined)

const SALT_BYTES = 32
/** 132 bits of base64url. */
const SIGNATURE_CHARACTERS = 22

export const makeLinkSalt = (): Buffer => randomBytes(SALT_BYTES)

/** Throws invalid_field. */
export function readLinkSeconds(span: string | number | undefined): number {
  if (span === undefined) return USUAL_SECONDS
  const seconds = parseDurationSeconds(String(span).trim()) ?? 0
  if (seconds >= SHORTEST_SECONDS && seconds <= LONGEST_SECONDS) return seconds
  throw invalidField('expires_in', `must be ${SECONDS_OR_DURATION}, from 60 seconds to 30 days`)
}

/** Whole seconds; a link never outlasts its clip. */
export function linkExpiry(
  { expiresAt }: { expiresAt: Date | null },
  { seconds, now }: { seconds: number; now: Date },
): Date {
  const end = Math.min(now.getTime() + seconds * 1000, expiresAt?.getTime() ?? Number.POSITIVE_INFINITY)
  return new Date(Math.floor(end / 1000) * 1000)
}

/**
 * The salt is in the database; without `encryptionKey`, if one is set, its reader can make no link. `expiresAt` is in
 * whole seconds.
 */
export function createLink(
  encryptionKey: string | undefined,
  key: LinkKey,
  { target: own, expiresAt }: { target: LinkTarget; expiresAt: Date },
): Link {
  const expires = String(Math.floor(expiresAt.getTime() / 1000))
  const ofAlbum = key.albumId === undefined ? '' : `a=${key.albumId}&`
  const sign = signerOf(encryptionKey, key)
  return {
    expiresAt,
    queryOf: (target) => (leadsTo(own, target) ? `?${ofAlbum}e=${expires}&s=${sign(target, expires)}` : undefined),
  }
}

/** A public address, with the query that may hold a link. */
export interface PublicAddress {
  /** Address that the query is signed for. */
  target: LinkTarget
  /** Address that the answer shows, if it is another one. */
  shows?: LinkTarget
  query: LinkQuery
}

/**
 * The link in a query if it is signed for this address, leads to the shown one, and has not expired. Takes the same
 * time for every clip.
 */
export function readLink(
  encryptionKey: string | undefined,
  key: LinkKey,
  { target, shows = target, query, now }: PublicAddress & { now: Date },
): Link | undefined {
  const { e: expires, s: presented } = query
  if (typeof expires !== 'string' || typeof presented !== 'string' || !/^\d{1,12}$/.test(expires)) return undefined
  const expected = Buffer.from(signerOf(encryptionKey, key)(target, expires))
  const given = Buffer.from(presented)
  const isValid = given.length === expected.length && timingSafeEqual(given, expected) && key.linkSalt !== null
  const expiresAt = new Date(Number(expires) * 1000)
  if (!isValid || expiresAt <= now || !leadsTo(target, shows)) return undefined
  return createLink(encryptionKey, key, { target, expiresAt })
}

/** Signs for an unknown salt as well, so that the time does not reveal whether links exist. */
const NO_SALT = Buffer.alloc(SALT_BYTES)

/** Derives the key once: a page of an album signs hundreds of addresses. */
function signerOf(encryptionKey = '', { id, linkSalt, albumId }: LinkKey) {
  const subject = albumId === undefined ? id : `${albumId}/${id}`
  const key = createHmac('sha256', encryptionKey)
    .update(linkSalt ?? NO_SALT)
    .digest()
  return (target: LinkTarget, expires: string): string => {
    const signature = createHmac('sha256', key).update(`${subject}/${target}/${expires}`).digest('base64url')
    return signature.slice(0, SIGNATURE_CHARACTERS)
  }
}
