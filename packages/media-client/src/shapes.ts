// Shapes of requests and answers. They agree with /openapi.json, which services/media/test/media-client.test.ts checks.

/** Addresses of a clip, and its `meta` as texts, as in `2.5s`. */
export interface Result {
  page: string
  files: Record<'gif' | 'jpg' | 'mp4' | 'webm', string>
  oembed: string
  /** HTML of an iframe. */
  embed: string
  meta: Record<'duration' | 'frames' | 'height' | 'width', string>
}

export interface Attribution {
  site: string
  user?: string
  url?: string
}

/** A file that is stored. */
export interface StoredFile {
  bytes: number
  width: number
  height: number
  sha256: string
  /** True for a file that has the streams of the source. */
  copied?: boolean
}

/** All that the owner of a clip may know. */
export interface Clip extends Result {
  id: string
  /** `hidden`: taken down by the operator. */
  state: 'processing' | 'ready' | 'failed' | 'hidden'
  /** 0 to 1. */
  progress: number
  title: string | null
  tags: string[]
  nsfw: boolean
  attribution: Attribution | null
  token_id: string | null
  created_at: string
  expires_at: string | null
  /** A visit extends the lifetime. */
  sliding: boolean
  visibility: Visibility
  hidden_reason?: string
  source: {
    kind: 'upload' | 'import'
    url: string | null
    type: string
    bytes: number
    sha256: string
    duration: number | null
    width: number
    height: number
    /** Parts of the source could not be read and are left out. */
    repaired?: boolean
  }
  edit?: {
    start?: number
    duration?: number
    crop?: string
    speed?: number
    mute?: boolean
    poster_at?: number
    caption?: string
    caption_position?: 'top' | 'bottom'
  }
  /** `at`: second that the owner chose; `number` counts the changes. `change`: the last one, until it is made. */
  poster: { at: number | null; number: number; change?: { at: number; state: 'making' | 'failed' } }
  sizes: Record<string, StoredFile>
  failure?: { code: string; message: string }
}

/** `unlisted`: for those with the address. `private`: for those with a link. */
export type Visibility = 'public' | 'unlisted' | 'private'

/** Texts, flags, visibility and lifetime of a clip, which `update` can change. */
export interface ClipTexts {
  title?: string
  tags?: string[]
  nsfw?: boolean
  attribution?: Attribution
  visibility?: Visibility
  /** Lifetime from now: `90m`, `7d`, seconds, or `never`. */
  expires_in?: number | string
  /** The end of the lifetime, instead of `expires_in`. */
  expires_at?: string
  /** A visit extends the lifetime. */
  sliding?: boolean
}

/** Fields of an upload or import. Times are seconds, or texts such as `1:02.5`. */
export interface ClipFields extends ClipTexts {
  start?: number | string
  duration?: number | string
  /** The end in the source, instead of `duration`. */
  end?: number | string
  /** `x,y,width,height` in pixels, or proportions such as `1:1`. */
  crop?: string
  /** 0.25 to 4. */
  speed?: number
  mute?: boolean
  /** Second of the clip that its poster shows. */
  poster_at?: number | string
  /** Text in the picture. */
  caption?: string
  caption_position?: 'top' | 'bottom'
  /** Id of an album that the clip joins at its end. */
  album?: string
}

/** Changes to a clip: null removes a value, an absent member stays. */
export type ClipChanges = { [Name in keyof ClipTexts]?: ClipTexts[Name] | null } & {
  /** Second of the clip that its poster shows; null: automatic. The picture follows soon. */
  poster_at?: number | string | null
}

/** An act on many clips. */
export type BulkAct =
  | { action: 'delete' }
  | { action: 'tag' | 'untag'; tags: string[] }
  | { action: 'visibility'; visibility: Visibility }
  | { action: 'nsfw'; nsfw: boolean }
  | { action: 'album'; album: string }
  | ({ action: 'lifetime' } & Pick<ClipChanges, 'expires_in' | 'expires_at' | 'sliding'>)

/** Outcome for one of many clips; `code` and `message` as of a request about this clip alone. */
export type BulkResult = { id: string; ok: true } | { id: string; ok: false; code: string; message: string }

/** Storage of a token and additions of today (UTC), each with its limit; null without one. */
export interface Usage {
  /** `reserved_bytes`: most that the files of processing clips may add. */
  stored: { clips: number; bytes: number; reserved_bytes: number; limit_bytes: number | null }
  today: { clips: number; bytes: number; limit_bytes: number | null }
}

export interface ListFilter {
  /** Words of title, tags and author; the last may be the beginning of one. */
  q?: string
  sort?: 'created' | 'title' | 'bytes' | 'duration' | 'views'
  order?: 'asc' | 'desc'
  /** Earliest day or time of the creation. */
  from?: string
  /** Day or time before which it was created. */
  to?: string
  tag?: string
  /** Id of an album in which the clips are. */
  album?: string
  state?: Exclude<Clip['state'], 'hidden'>
  nsfw?: boolean
  visibility?: Visibility
  /** Id of a token, or `none`; admins only. */
  token?: string
}

/** An album, as its owner sees it. */
export interface Album {
  id: string
  page: string
  oembed: string
  /** HTML of an iframe. */
  embed: string
  title: string
  description: string | null
  visibility: Visibility
  /** Clips in any state. */
  count: number
  /** Poster of its first clip that is ready, neither sensitive nor private. */
  cover: string | null
  etag: string
  token_id: string
  created_at: string
  updated_at: string
}

/** Fields that `albums.update` changes; an absent one stays. */
export interface AlbumFields {
  title?: string
  description?: string | null
  visibility?: Visibility
}

/** An added clip. */
export interface Added extends Result {
  id: string
  state: 'processing' | 'ready'
  /** True when an earlier request with the same key added the clip, whose answer was lost. */
  isReplay: boolean
  /** Deletes a clip that was added without a token. */
  deleteToken?: string
  /** Page that asks, and then deletes the clip. */
  deleteUrl?: string
  expiresAt?: Date
}

/**
 * An event of `watch`. `file` reports a file that is stored before the rest; all but these and `processing` are the
 * last.
 */
export type ClipEvent =
  | { type: 'processing' | 'ready' | 'hidden' | 'deleted'; progress: number }
  | { type: 'failed'; progress: number; failure?: { code: string; message: string } }
  | { type: 'file'; file: string; bytes: number }

/**
 * An event of `watchAll`. `reset`: more has changed than is reported, so list the clips again. `position`: all before
 * it is reported; `after` resumes there within ten minutes.
 */
export type LiveEvent =
  | { type: 'created' | 'processing' | 'ready' | 'failed' | 'updated'; id: string; clip: Clip }
  | { type: 'deleted'; id: string }
  | { type: 'reset' }
  | { type: 'position'; after: string }
