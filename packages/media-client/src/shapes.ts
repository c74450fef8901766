// Shapes of requests and answers. The one rule: they agree with /openapi.json, which services/media/test/media-client.test.ts checks.

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
  state: 'processing' | 'ready' | 'failed'
  /** 0 to 1. */
  progress: number
  title: string | null
  tags: string[]
  nsfw: boolean
  attribution: Attribution | null
  token_id: string | null
  created_at: string
  expires_at: string | null
  source: {
    kind: 'upload' | 'import'
    url: string | null
    type: string
    bytes: number
    sha256: string
    duration: number | null
    width: number
    height: number
  }
  edit?: { start?: number; duration?: number; crop?: string; speed?: number; mute?: boolean; poster_at?: number }
  sizes: Record<string, StoredFile>
  failure?: { code: string; message: string }
}

/** Texts and flags of a clip, which `update` can change. */
export interface ClipTexts {
  title?: string
  tags?: string[]
  nsfw?: boolean
  attribution?: Attribution
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
}

/** Changes to a clip: null removes a value, an absent member stays. */
export type ClipChanges = { [Name in keyof ClipTexts]?: ClipTexts[Name] | null }

export interface ListFilter {
  tag?: string
  state?: Clip['state']
  nsfw?: boolean
  /** Id of a token, or `none`; admins only. */
  token?: string
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

/** An event of `watch`. `file` reports a file that is stored before the rest; `ready`, `failed` and `deleted` are the last. */
export type ClipEvent =
  | { type: 'processing' | 'ready' | 'deleted'; progress: number }
  | { type: 'failed'; progress: number; failure?: { code: string; message: string } }
  | { type: 'file'; file: string; bytes: number }
