/** Author of a clip, as its owner states. Shown by core/clips/credit.ts. */
export interface Attribution {
  /** `twitter`, `reddit`, `instagram`, or a URL. */
  site: string
  user?: string
  url?: string
}
