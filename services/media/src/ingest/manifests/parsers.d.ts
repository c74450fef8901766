/** The used parts of two untyped parsers. Every value in their results is the manifest's claim. */
declare module 'm3u8-parser' {
  export interface ByteRange {
    offset: number
    length: number
  }
  export interface HlsSegment {
    uri: string
    duration: number
    byterange?: ByteRange
    discontinuity?: boolean
    map?: { uri: string; byterange?: ByteRange }
  }
  export interface HlsVariant {
    uri: string
    attributes: {
      BANDWIDTH?: number
      RESOLUTION?: { width: number; height: number }
      CODECS?: string
      AUDIO?: string
    }
  }
  export interface HlsManifest {
    endList?: boolean
    segments: HlsSegment[]
    playlists?: HlsVariant[]
    mediaGroups?: { AUDIO: Record<string, Record<string, { default?: boolean; uri?: string }>> }
  }
  export class Parser {
    push(text: string): void
    end(): void
    manifest: HlsManifest
  }
}

declare module 'mpd-parser' {
  export interface ByteRange {
    offset: number | bigint
    length: number | bigint
  }
  export interface DashSegment {
    resolvedUri: string
    duration?: number
    byterange?: ByteRange
    map?: { resolvedUri: string; byterange?: ByteRange }
  }
  export interface DashRepresentation {
    attributes: {
      type?: string
      sourceDuration?: number
      periodStart: number
      mimeType?: string
      contentType?: string
      codecs?: string
      bandwidth?: number
      width?: number
      height?: number
      baseUrl: string
      contentProtection?: object
    }
  }
  export function stringToMpdXml(text: string): object
  export function inheritAttributes(
    mpd: object,
    options: { manifestUri: string },
  ): { representationInfo: DashRepresentation[] }
  export function toPlaylists(
    representations: DashRepresentation[],
  ): { segments?: DashSegment[]; sidx?: { resolvedUri: string } }[]
}
