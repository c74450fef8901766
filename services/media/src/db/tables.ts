import type { ColumnType, Generated } from 'kysely'
import type { ErrorCode } from '../errors.ts'
import type { MediaInfo } from './media-info.ts'

// The tables. `migrations/` is the truth, and the service writes all times, never the server. A clip has the texts of
// one upload, a source the bytes and their state; clips may share a source (core/clips/clips.store.ts).

export const TABLES = [
  'api_tokens',
  'sources',
  'clips',
  'clip_tags',
  'clip_search',
  'clip_words',
  // A function, with the prefix of the tables.
  'search_words',
  'blobs',
  'renditions',
  'variants',
  'rate_limits',
  'resumable_uploads',
  'token_days',
  'token_storage',
  'idempotency_keys',
  'webhooks',
  'webhook_deliveries',
  'reports',
  'report_keys',
  'moderations',
  'blocked_hashes',
  'audit_entries',
  'storage_checks',
  'storage_counts',
  'browser_sessions',
  'clip_changes',
  'clip_links',
  'clip_views',
  'clip_view_sums',
  'albums',
  'album_items',
] as const satisfies readonly (keyof DB | 'search_words')[]

/** Kinds of changes of a clip: the names of its events. */
export type ChangeKind = 'created' | 'processing' | 'ready' | 'failed' | 'deleted' | 'updated'

export type Scope = 'write' | 'read' | 'delete' | 'admin'
/** The four files that every ready clip has. */
export const MAIN_KINDS = ['gif', 'jpg', 'mp4', 'webm'] as const
export type MainKind = (typeof MAIN_KINDS)[number]
/** Files that are stored before the others for a caller who waits for them alone, if the mp4 is a copy. */
export const FIRST_KINDS = ['jpg', 'mp4'] as const satisfies MainKind[]
/** Files that are made later in the background; a clip is complete without them. */
export const EXTRA_KINDS = ['av1', 'webp'] as const
export type ExtraKind = (typeof EXTRA_KINDS)[number]
export const RENDITION_KINDS = [...MAIN_KINDS, ...EXTRA_KINDS] as const
export type RenditionKind = MainKind | ExtraKind
export type VariantState = 'making' | 'stored' | 'original' | 'refused' | 'failed'
export const SOURCE_STATES = ['processing', 'ready', 'failed'] as const
export type SourceState = (typeof SOURCE_STATES)[number]
/**
 * `unlisted`: for anyone with the address, but not for search engines. `private`: only with a link
 * (core/clip-access/share-links.ts).
 */
export type Visibility = 'public' | 'unlisted' | 'private'

export const TOKEN_LIMITS = ['upload', 'import', 'read', 'queued', 'quota_bytes', 'daily_bytes'] as const

/**
 * Limits of one token that replace the service's own. Calls per hour (`upload`, `import`) or minute (`read`), clips
 * waiting or processing (`queued`), stored bytes, and bytes added per day.
 */
export type TokenLimits = Partial<Record<(typeof TOKEN_LIMITS)[number], number>>

type Json<Value> = ColumnType<Value, unknown, unknown>
type MaybeTime = ColumnType<Date | null, Date | null | undefined, Date | null>

/** Author of a clip, as its owner states. Shown by core/clips/credit.ts. */
export interface Attribution {
  /** `twitter`, `reddit`, `instagram`, or a URL. */
  site: string
  user?: string
  url?: string
}

/** The answer of a remembered refusal. */
export interface Refusal {
  code: ErrorCode
  message: string
  details?: Record<string, unknown>
}

/** Events of the clips of a webhook's token. */
export const CLIP_EVENTS = ['media.ready', 'media.failed', 'media.deleted'] as const
export type ClipEvent = (typeof CLIP_EVENTS)[number]
/** Events of the albums of a webhook's token. */
export const ALBUM_EVENTS = ['album.created', 'album.updated', 'album.deleted'] as const
export type AlbumEvent = (typeof ALBUM_EVENTS)[number]
/** Events of all clips, for webhooks of tokens with the scope `admin`. */
export const ADMIN_EVENTS = ['media.reported', 'media.hidden', 'media.unhidden'] as const
export type AdminEvent = (typeof ADMIN_EVENTS)[number]
export const WEBHOOK_EVENTS = [...CLIP_EVENTS, ...ALBUM_EVENTS, ...ADMIN_EVENTS] as const
export type WebhookEvent = ClipEvent | AlbumEvent | AdminEvent

export const REPORT_REASONS = ['illegal', 'copyright', 'harassment', 'nsfw', 'spam', 'other'] as const
export type ReportReason = (typeof REPORT_REASONS)[number]
/** Why a clip is hidden: as a moderator said, by the number of reports, or by the scanner's verdict. */
export const HIDDEN_REASONS = [...REPORT_REASONS, 'reports', 'scanner'] as const
export type HiddenReason = (typeof HIDDEN_REASONS)[number]
export const MODERATION_ACTIONS = ['dismiss', 'nsfw', 'safe', 'hide', 'unhide', 'delete', 'block', 'unblock'] as const
export type ModerationAction = (typeof MODERATION_ACTIONS)[number]
/** A moderator, a command of the operator, the number of reports, the scanner. */
export const MODERATION_ORIGINS = ['admin', 'cli', 'reports', 'scanner'] as const
export type ModerationOrigin = (typeof MODERATION_ORIGINS)[number]
/** Acts of admins and operators (core/audit/audit.ts). */
export const AUDIT_ACTIONS = [
  'token_created',
  'token_changed',
  'token_revoked',
  'clip_changed',
  'clip_deleted',
  'clip_moderated',
  'links_created',
  'links_ended',
  'album_links_created',
  'album_links_ended',
  'album_changed',
  'album_deleted',
  'sessions_ended',
  'dead_letter_retried',
  'dead_letter_deleted',
  'files_repaired',
  'storage_check_begun',
  'scans_queued',
] as const
export type AuditAction = (typeof AUDIT_ACTIONS)[number]
export const VERDICTS = ['ok', 'nsfw', 'hide', 'block'] as const
export type Verdict = (typeof VERDICTS)[number]

/** Result of a check of the stored files. */
export interface StorageResult {
  files: number
  bytes: number
  rows: number
  /** Findings by kind. */
  found: Record<string, number>
  /** The first findings. */
  findings: object[]
}

export interface DB {
  api_tokens: {
    id: string
    name: string
    prefix: string
    hash: Buffer
    scopes: Scope[]
    limits: Json<TokenLimits>
    is_bootstrap: Generated<boolean>
    created_at: Date
    last_used_at: MaybeTime
    expires_at: MaybeTime
    revoked_at: MaybeTime
  }
  sources: {
    id: string
    /** Hash of the file, or of file and edit (core/edits/edit.ts). */
    sha256: Buffer
    /** Hash of the file if it is edited. */
    file_sha256: ColumnType<Buffer | null, Buffer | null | undefined, Buffer | null>
    /** Token that added it first. */
    token_id: string | null
    pipeline_version: number
    state: SourceState
    error_code: ColumnType<ErrorCode | null, ErrorCode | null | undefined, ErrorCode | null>
    error_details: Json<Record<string, unknown> | null>
    progress: Generated<number>
    bytes: number
    rendition_bytes: Generated<number>
    /** Most bytes of its files; counts while it is processing. */
    reserved_bytes: Generated<number>
    info: Json<MediaInfo>
    has_audio: boolean
    /** Thumbhash of the poster. */
    placeholder: ColumnType<Buffer | null, Buffer | null | undefined, Buffer | null>
    /** Poster and mp4 were stored before the rest. */
    has_first_files: Generated<boolean>
    /** All files are stored, and wait for the scanner. */
    held: Generated<boolean>
    /** Answer of the scanner. */
    verdict: ColumnType<Verdict | null, Verdict | null | undefined, Verdict | null>
    extras: Generated<ExtraKind[]>
    clip_count: number
    requeue_count: Generated<number>
    /** Machine whose worker began the last attempt. */
    worker: ColumnType<string | null, string | null | undefined, string | null>
    unreferenced_at: MaybeTime
    created_at: Date
    finished_at: MaybeTime
  }
  clips: {
    id: string
    token_id: string | null
    source_id: string | null
    title: string | null
    tags: string[]
    tag_keys: string[]
    nsfw: boolean
    /** `nsfw` was decided, and the owner cannot change it. */
    nsfw_forced: Generated<boolean>
    attribution: Json<Attribution | null>
    source_kind: 'upload' | 'import'
    source_url: string | null
    delete_token_hash: ColumnType<Buffer | null, Buffer | null | undefined, Buffer | null>
    visibility: Generated<Visibility>
    expires_at: MaybeTime
    /** Seconds by which a visit extends the lifetime. */
    sliding_seconds: ColumnType<number | null, number | null | undefined, number | null>
    /** Key of links to a private clip. */
    link_salt: ColumnType<Buffer | null, Buffer | null | undefined, Buffer | null>
    hidden_at: MaybeTime
    hidden_reason: ColumnType<HiddenReason | null, HiddenReason | null | undefined, HiddenReason | null>
    created_at: Date
    /** Second of a poster that the owner chose. */
    poster_at: ColumnType<number | null, undefined, number | null>
    /** Its variant. */
    poster_name: ColumnType<string | null, undefined, string | null>
    poster_placeholder: ColumnType<Buffer | null, undefined, Buffer | null>
    poster_number: ColumnType<number, undefined, number>
    poster_changed_at: ColumnType<Date | null, undefined, Date | null>
    /** The last change that was asked for, until it is made. */
    poster_request: ColumnType<string | null, undefined, string | null>
    poster_wanted: ColumnType<number | null, undefined, number | null>
    poster_state: ColumnType<'making' | 'failed' | null, undefined, 'making' | 'failed' | null>
    poster_requested_at: ColumnType<Date | null, undefined, Date | null>
    deleted_at: MaybeTime
    /** Hash of the file that a deleted clip had. */
    deleted_sha256: ColumnType<Buffer | null, Buffer | null | undefined, Buffer | null>
  }
  /** A row for each of a clip's `tag_keys` that triggers keep; none of deleted clips. */
  clip_tags: {
    clip_id: string
    tag_key: string
    token_id: string | null
    created_at: Date
    nsfw: boolean
  }
  /** Sort keys and words of clips that triggers keep; none of deleted clips. */
  clip_search: {
    clip_id: string
    token_id: string | null
    created_at: Date
    /** Bytes of the source. */
    bytes: number
    duration_ms: number
    nsfw: boolean
    /** Beginning of the folded title; empty without one. */
    title_key: string
    /** A tsvector. */
    words: string
    /** Sum of all kinds and days. */
    views: Generated<number>
  }
  /** A row for each of these words. */
  clip_words: {
    created_at: Date
    token_id: string | null
    clip_id: string
    word: string
  }
  blobs: {
    sha256: Buffer
    extension: string
    bytes: number
    reference_count: Generated<number>
    unreferenced_at: MaybeTime
    generation: Generated<string>
    deleting_since: Generated<Date | null>
  }
  renditions: {
    source_id: string
    kind: RenditionKind
    sha256: Buffer
    bytes: number
    width: number
    height: number
    /** The source's own streams, not encoded again. */
    copied: Generated<boolean>
  }
  /** Files made on request, by the canonical name of their options (core/variants/variant.ts). */
  variants: {
    source_id: string
    name: string
    state: VariantState
    extension: string
    sha256: ColumnType<Buffer | null, Buffer | null | undefined, Buffer | null>
    /** Size of the file; of a refused one the fewest bytes that were reached. */
    bytes: Generated<number>
    claimed_at: Date
    used_at: Date
  }
  rate_limits: {
    key: string
    points: number
    expire: number | null
  }
  resumable_uploads: {
    id: string
    token_id: string | null
    /** Length of the whole file; null until the client declares it. */
    bytes: number | null
    /** Upload-Metadata in the encoding of the protocol. */
    metadata: string
    /** The clip, once the upload is finished. */
    clip_id: ColumnType<string | null, undefined, string>
    /** Rate-limit key of the caller. */
    owner_key: string
    created_at: Date
    expires_at: Date
  }
  token_days: {
    token_id: string
    /** UTC day, as in 2026-11-21. */
    day: ColumnType<string, string, never>
    requests: Generated<number>
    clips: Generated<number>
    bytes: Generated<number>
  }
  /** Sums that triggers keep. */
  token_storage: {
    token_id: string
    clips: Generated<number>
    bytes: Generated<number>
    /** Most bytes of files of processing clips; not in `bytes`. */
    reserved_bytes: Generated<number>
  }
  idempotency_keys: {
    token_id: string
    route: string
    key: string
    fingerprint: Buffer
    clip_id: string | null
    refusal: Json<Refusal | null>
    /** Body of the answer, of a request that adds no clip. */
    answer: Json<object | null>
    created_at: Date
  }
  webhooks: {
    id: string
    token_id: string
    url: string
    events: WebhookEvent[]
    secret: string
    created_at: Date
    failures: Generated<number>
    failing_since: MaybeTime
    paused_until: MaybeTime
    disabled_at: MaybeTime
  }
  webhook_deliveries: {
    id: string
    webhook_id: string
    type: WebhookEvent
    payload: Json<object>
    state: 'pending' | 'delivered' | 'failed'
    attempts: Generated<number>
    attempts_before: Generated<number>
    next_attempt_at: MaybeTime
    give_up_at: Date
    last_attempt_at: MaybeTime
    last_status: ColumnType<number | null, number | null | undefined, number | null>
    last_error: ColumnType<string | null, string | null | undefined, string | null>
    created_at: Date
  }
  reports: {
    id: string
    clip_id: string
    reason: ReportReason
    text: string | null
    email: string | null
    /** HMAC of the client address; null if that is unknown. */
    reporter: Buffer | null
    state: ColumnType<'open' | 'closed', undefined, 'closed'>
    moderation_id: ColumnType<string | null, undefined, string>
    created_at: Date
  }
  report_keys: {
    /** Month in UTC, as in 2026-11. */
    month: string
    key: Buffer
  }
  moderations: {
    id: string
    clip_id: string
    action: ModerationAction
    origin: ModerationOrigin
    reason: HiddenReason | null
    note: string | null
    /** Token of the moderator. */
    token_id: string | null
    /** Account of the machine, for a command. */
    operator: string | null
    created_at: Date
  }
  blocked_hashes: {
    sha256: Buffer
    clip_id: string
    created_at: Date
  }
  audit_entries: {
    id: string
    action: AuditAction
    /** Clip, token or dead letter. */
    target: string | null
    origin: 'admin' | 'cli'
    token_id: string | null
    /** Account of the machine, for a command. */
    operator: string | null
    /** Address of the admin's client. */
    address: ColumnType<string | null, string | null | undefined, never>
    details: Json<object>
    created_at: Date
  }
  /** Changes that triggers note, of the last half hour. */
  clip_changes: {
    /** Transaction of the change. */
    xid: Generated<string>
    token_id: string | null
    clip_id: string
    kind: ChangeKind
    changed_at: Generated<Date>
  }
  /** Links that have not expired. */
  clip_links: {
    clip_id: string
    expires_at: Date
    created_at: Date
  }
  clip_views: {
    clip_id: string
    /** UTC day. */
    day: string
    page: Generated<number>
    embed: Generated<number>
    file: Generated<number>
  }
  /** Sums of all days. */
  clip_view_sums: {
    clip_id: string
    page: Generated<number>
    embed: Generated<number>
    file: Generated<number>
  }
  /** Checks of the stored files: the one that runs, and the last that ended. */
  storage_checks: {
    id: string
    /** Account of the machine, for a command. */
    operator: string | null
    begun_at: Date
    finished_at: MaybeTime
    worker: ColumnType<string | null, string | null | undefined, string | null>
    result: ColumnType<StorageResult | null, unknown, unknown>
    error: ColumnType<string | null, string | null | undefined, string | null>
  }
  storage_counts: {
    /** Extension of the files. */
    kind: string
    files: number
    bytes: number
    counted_at: Date
  }
  albums: {
    id: string
    token_id: string
    title: string
    description: string | null
    visibility: Visibility
    /** Key of links to a private album. */
    link_salt: ColumnType<Buffer | null, Buffer | null | undefined, Buffer | null>
    /** Number of the changes by its owner. */
    version: Generated<number>
    created_at: Date
    updated_at: Date
  }
  /** None of deleted clips: a trigger and the foreign key see to it. */
  album_items: {
    album_id: string
    clip_id: string
    position: number
    added_at: Date
  }
  browser_sessions: {
    /** Hash of the cookie's value. */
    hash: Buffer
    token_id: string
    client_name: string | null
    created_at: Date
    last_used_at: Date
    expires_at: Date
  }
}
